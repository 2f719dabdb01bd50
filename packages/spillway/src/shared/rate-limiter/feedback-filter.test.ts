import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import { FeedbackFilter } from './feedback-filter.js'
import type { UnitLimit } from './options.js'
import type { VendorHeaders } from './vendor-headers.js'

const LIMITS = [
  { unit: 'requests', spec: { limit: 1_000 } },
  { unit: 'tokens', spec: { limit: 100_000 } },
] as unknown as readonly UnitLimit[]

const SILENT: VendorHeaders = { retryAfterMs: undefined, left: [] }
const left = (remaining: number): VendorHeaders => ({
  retryAfterMs: undefined,
  left: [{ unit: 'requests', remaining, resetMs: 1_000 }],
})

const createWords = () =>
  new FeedbackFilter(new LaneRegistry({ name: 'vendor', clock: createVirtualClock() }))

function hearing() {
  const words = createWords()
  const hear = (nowMs: number, word: VendorHeaders, { good = true, throttled = false } = {}) =>
    words.read('a', { headers: word, good, throttled }, LIMITS, nowMs)
  return { words, hear }
}

describe('filtering of vendor rate limit reports', () => {
  it('remaining units are reported now and then, and at once after a large drop or when few are left', () => {
    const { hear } = hearing()
    const requests = (remaining: number) => [{ limit: 0, remaining, resetUs: 1_000_000 }]
    expect(hear(0, left(900))).toEqual({ throttled: false, left: requests(900) })
    expect(hear(1, left(899))).toBeUndefined()
    expect(hear(2, left(800))?.left).toEqual(requests(800))
    expect(hear(50, left(790))).toBeUndefined()
    expect(hear(102, left(789))?.left).toEqual(requests(789))
    expect(hear(103, left(100))?.left).toEqual(requests(100))
    expect(hear(104, left(99))?.left).toEqual(requests(99))
  })

  it('every throttled answer is reported, and the first good answer after it', () => {
    const { words, hear } = hearing()
    const slow = { good: false, throttled: true }
    expect(hear(0, SILENT, slow)).toEqual({ throttled: true, left: [] })
    expect(hear(1, SILENT, slow)).toEqual({ throttled: true, left: [] })
    expect(words.readEnough('a', 2)).toBe(false)
    expect(hear(2, SILENT)).toEqual({ throttled: false, left: [] })
    expect(hear(3, SILENT)).toBeUndefined()
  })

  it('only a few answers per interval are read, and fewer if they have no rate limit headers', () => {
    const read = (
      word: VendorHeaders,
      nowMs: number,
      { words, hear }: ReturnType<typeof hearing>,
    ) => {
      let count = 0
      for (let i = 0; i < 100; i++) {
        if (words.readEnough('a', nowMs)) continue
        hear(nowMs, word)
        count++
      }
      return count
    }
    const talking = hearing()
    const silent = hearing()
    expect(read(left(900), 0, talking)).toBe(5)
    expect(read(left(900), 9, talking)).toBe(0)
    expect(read(left(900), 10, talking)).toBe(5)
    expect(read(SILENT, 0, silent)).toBe(1)
    expect(read(SILENT, 20, silent)).toBe(1)
  })

  it('failures in between do not keep good answers from being read', () => {
    const { words, hear } = hearing()
    hear(0, SILENT)
    for (let ms = 1; ms < 50; ms++) hear(ms, SILENT, { good: false })
    expect(words.readEnough('a', 50)).toBe(false)
  })

  it('the report state of an idle lane is dropped', () => {
    const words = createWords()
    for (let lane = 0; lane < 10_000; lane++) {
      words.read(`lane ${lane}`, { headers: SILENT, good: true, throttled: false }, LIMITS, lane)
    }
    words.sweep(60_000)
    expect(words.size).toBe(10_000)
    words.sweep(65_000)
    expect(words.size).toBe(5_000)
    words.sweep(70_000)
    expect(words.size).toBe(0)
  })
})
