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

const createFilter = () =>
  new FeedbackFilter(new LaneRegistry({ name: 'vendor', clock: createVirtualClock() }))

function createReader() {
  const filter = createFilter()
  const readAnswer = (
    nowMs: number,
    headers: VendorHeaders,
    { good = true, throttled = false } = {},
  ) => filter.read('a', { headers, good, throttled }, LIMITS, nowMs)
  return { filter, readAnswer }
}

describe('filtering of vendor rate limit reports', () => {
  it('remaining units are reported now and then, and at once after a large drop or when few are left', () => {
    const { readAnswer } = createReader()
    const requests = (remaining: number) => [{ limit: 0, remaining, resetUs: 1_000_000 }]
    expect(readAnswer(0, left(900))).toEqual({ throttled: false, left: requests(900) })
    expect(readAnswer(1, left(899))).toBeUndefined()
    expect(readAnswer(2, left(800))?.left).toEqual(requests(800))
    expect(readAnswer(50, left(790))).toBeUndefined()
    expect(readAnswer(102, left(789))?.left).toEqual(requests(789))
    expect(readAnswer(103, left(100))?.left).toEqual(requests(100))
    expect(readAnswer(104, left(99))?.left).toEqual(requests(99))
  })

  it('every throttled answer is reported, and the first good answer after it', () => {
    const { filter, readAnswer } = createReader()
    const slow = { good: false, throttled: true }
    expect(readAnswer(0, SILENT, slow)).toEqual({ throttled: true, left: [] })
    expect(readAnswer(1, SILENT, slow)).toEqual({ throttled: true, left: [] })
    expect(filter.readEnough('a', 2)).toBe(false)
    expect(readAnswer(2, SILENT)).toEqual({ throttled: false, left: [] })
    expect(readAnswer(3, SILENT)).toBeUndefined()
  })

  it('only a few answers per interval are read, and fewer if they have no rate limit headers', () => {
    const read = (
      headers: VendorHeaders,
      nowMs: number,
      { filter, readAnswer }: ReturnType<typeof createReader>,
    ) => {
      let count = 0
      for (let i = 0; i < 100; i++) {
        if (filter.readEnough('a', nowMs)) continue
        readAnswer(nowMs, headers)
        count++
      }
      return count
    }
    const withHeaders = createReader()
    const withoutHeaders = createReader()
    expect(read(left(900), 0, withHeaders)).toBe(5)
    expect(read(left(900), 9, withHeaders)).toBe(0)
    expect(read(left(900), 10, withHeaders)).toBe(5)
    expect(read(SILENT, 0, withoutHeaders)).toBe(1)
    expect(read(SILENT, 20, withoutHeaders)).toBe(1)
  })

  it('failures in between do not keep good answers from being read', () => {
    const { filter, readAnswer } = createReader()
    readAnswer(0, SILENT)
    for (let ms = 1; ms < 50; ms++) readAnswer(ms, SILENT, { good: false })
    expect(filter.readEnough('a', 50)).toBe(false)
  })

  it('the report state of an idle lane is dropped', () => {
    const filter = createFilter()
    for (let lane = 0; lane < 10_000; lane++) {
      filter.read(`lane ${lane}`, { headers: SILENT, good: true, throttled: false }, LIMITS, lane)
    }
    filter.sweep(60_000)
    expect(filter.size).toBe(10_000)
    filter.sweep(65_000)
    expect(filter.size).toBe(5_000)
    filter.sweep(70_000)
    expect(filter.size).toBe(0)
  })
})
