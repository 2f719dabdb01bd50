import { describe, expect, it } from 'vitest'
import type { Random } from '../../../core/random.js'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import { Redial } from './redial.js'

/** A line that the test connects, breaks and watches. */
class FakeLine {
  dropped = 0
  connect!: () => void
  fail!: (problem: Error) => void
  readonly #opened = new Promise<void>((resolve, reject) => {
    this.connect = resolve
    this.fail = reject
  })

  constructor(
    readonly client: string,
    readonly atMs: number,
    readonly lost: (problem: unknown) => void,
  ) {}

  open(): Promise<void> {
    return this.#opened
  }

  drop(): void {
    this.dropped++
  }
}

function setup({ random = () => 0.5 }: { random?: Random } = {}) {
  const clock = createVirtualClock()
  const lines: FakeLine[] = []
  const dial = (lost: (problem: unknown) => void) => {
    const line = new FakeLine(`client ${lines.length + 1}`, clock.now(), lost)
    lines.push(line)
    return line
  }
  const redial = new Redial<string>({ dial, clock, random })
  return { clock, lines, redial }
}

describe('Redial', () => {
  it('has a client only while its connection is up', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    expect(redial.client).toBeUndefined()
    lines[0]?.connect()
    await clock.settle()
    expect(redial.client).toBe('client 1')

    lines[0]?.lost(new Error('reset'))
    expect(redial.client).toBeUndefined()
    expect(redial.problem).toEqual(new Error('reset'))
    expect(lines[0]?.dropped).toBe(1)
    await clock.advance(100)
    lines[1]?.connect()
    await clock.settle()
    expect(redial.client).toBe('client 2')
    expect(redial.problem).toBeUndefined()
  })

  it.each([
    { jitter: 'least', chance: 0, pauses: [50, 100, 200, 400, 500, 500, 500] },
    { jitter: 'most', chance: 1, pauses: [100, 200, 400, 800, 1_000, 1_000, 1_000] },
  ])('pauses longer from try to try, with the $jitter jitter', async ({ chance, pauses }) => {
    const { clock, lines } = setup({ random: () => chance })
    for (const pauseMs of pauses) {
      await clock.settle()
      const failedMs = clock.now()
      lines.at(-1)?.fail(new Error('refused'))
      await clock.advance(pauseMs)
      expect(lines.at(-1)?.atMs).toBe(failedMs + pauseMs)
    }
  })

  it('starts with short pauses again after it has been connected', async () => {
    const { clock, lines } = setup()
    for (let tries = 0; tries < 5; tries++) {
      await clock.settle()
      lines.at(-1)?.fail(new Error('refused'))
      await clock.advance(2_000)
    }
    lines.at(-1)?.connect()
    await clock.settle()
    lines.at(-1)?.lost(new Error('reset'))
    const lostMs = clock.now()
    await clock.advance(2_000)
    expect((lines.at(-1)?.atMs ?? 0) - lostMs).toBe(75)
  })

  it('gives up a handshake that never ends', async () => {
    const { clock, lines, redial } = setup()
    await clock.advance(5_000)
    expect(lines[0]?.dropped).toBe(1)
    expect(redial.problem).toEqual(new Error('not connected within 5000 ms'))
    await clock.advance(100)
    expect(lines).toHaveLength(2)

    // Too late: it must not come back as a second connection.
    lines[0]?.connect()
    await clock.settle()
    expect(redial.client).toBeUndefined()
    expect(lines[0]?.dropped).toBe(2)
  })

  it('hears only about the connection it has', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.fail(new Error('refused'))
    await clock.advance(100)
    lines[1]?.connect()
    await clock.settle()
    lines[0]?.lost(new Error('an echo'))
    expect(redial.client).toBe('client 2')
  })

  it('makes a new connection when told that this one is dead', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.connect()
    await clock.settle()
    redial.hangUp(new Error('silent'))
    redial.hangUp(new Error('silent'))
    expect(lines[0]?.dropped).toBe(1)
    await clock.advance(100)
    expect(lines).toHaveLength(2)
  })

  it('does not wait for the next attempt when there is news', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.fail(new Error('refused'))
    await clock.settle()
    redial.hurry()
    redial.hurry()
    await clock.settle()
    expect(lines).toHaveLength(2)
  })

  it('gives up an attempt that leads to the wrong place', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    redial.hangUp(new Error('moved'))
    redial.hurry()
    await clock.settle()
    expect(lines[0]?.dropped).toBe(1)
    expect(lines).toHaveLength(2)
  })

  it('never keeps the process alive, and is quiet after it was closed in whatever state', async () => {
    for (const state of ['dialling', 'open', 'waiting']) {
      const { clock, lines, redial } = setup()
      await clock.settle()
      if (state === 'open') lines[0]?.connect()
      if (state === 'waiting') lines[0]?.fail(new Error('refused'))
      await clock.settle()
      expect(clock.pending).toBe(0)
      redial.close()
      redial.close()
      expect(lines[0]?.dropped).toBe(1)
      lines[0]?.lost(new Error('an echo'))
      await clock.advance(10_000)
      expect(lines).toHaveLength(1)
      expect(redial.client).toBeUndefined()
    }
  })
})
