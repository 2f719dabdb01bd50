import { createVirtualClock } from 'spillway/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { ACTS, type Act, play, type Stage } from './act.js'
import { frame } from './frame.js'
import { paint } from './paint.js'
import type { Summary } from './summary.js'
import { table } from './table.js'

const WIDTHS = [20, 40, 60, 79, 200]
const act = ACTS[1] as Act
const heading = { title: 'Act 2 of 2: with Spillway', means: act.means }

/** The run in the middle of its overload, and its summary at the end. */
async function overloaded(look: (stage: Stage) => void): Promise<Summary> {
  const clock = createVirtualClock()
  const watch = (stage: Stage) => {
    clock.schedule(4_000, () => look(stage))
    return () => {}
  }
  return clock.until(play(act, { clock, seed: 1, watch }))
}

function plain(lines: ReturnType<typeof frame>, width: number): string {
  return lines.map((line) => paint(line, { width, colours: false })).join('\n')
}

describe('frame of the overloaded-pod example', () => {
  const frames = new Map<number, string>()
  let summary: Summary

  beforeAll(async () => {
    summary = await overloaded((stage) => {
      for (const width of WIDTHS) frames.set(width, plain(frame(heading, stage, width), width))
    })
  })

  it('the frame shows phase, calls in flight, queue and refusals', () => {
    expect(frames.get(79)).toMatch(/overload +4\.0 s/)
    expect(frames.get(79)).toMatch(/in flight █{20} 20 \(20 run well\)/)
    expect(frames.get(79)).toMatch(/in line {3}█+ \d+/)
    expect(frames.get(79)).toMatch(/refused at once +1,\d\d\d/)
  })

  it.each(WIDTHS)('the frame fits into %i columns and 24 lines', (width) => {
    const lines = (frames.get(width) as string).split('\n')
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(width)
    expect(lines.length).toBeLessThan(24)
  })

  it('the frame keeps every figure in a narrow window', () => {
    for (const label of ['offered', 'goodput', 'answered', 'refused', 'failed', 'timed out']) {
      expect(frames.get(40)).toContain(label)
    }
  })

  it.each([30, 79])('the table keeps every value in %i columns', (width) => {
    const lines = table(['unprotected', 'with Spillway'], [summary, summary], width)
    expect(plain(lines, width)).toMatch(/at once +at once\n/)
    expect(plain(lines, width)).toMatch(/20 +20$/)
  })
})

describe('paint()', () => {
  const line = [{ text: 'good', colour: 'green' }, { text: ' and more' }] as const

  it('paint() cuts before it adds colours', () => {
    expect(paint(line, { width: 6, colours: true })).toBe('\x1b[32mgood\x1b[0m a')
  })

  it('paint() writes no escape sequence without colours', () => {
    expect(paint(line, { width: 80, colours: false })).toBe('good and more')
  })
})
