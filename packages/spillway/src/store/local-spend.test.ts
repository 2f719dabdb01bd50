import { describe, expect, it } from 'vitest'
import type { LimitSpec } from './limit-spec.js'
import { LocalSpend } from './local-spend.js'

const SECOND = 1_000_000
const windows: LimitSpec = {
  id: 'requests',
  algorithm: 'sliding-window',
  limit: 200,
  windowUs: 5 * SECOND,
  slices: 50,
  burst: 0,
  span: 'lane',
}

const lane = { lane: 'a', limits: [windows] }

/** Number of calls that a pod grants by itself at that moment. */
function takes(localSpend: LocalSpend, nowUs: number, pods = 4, spec = windows): number {
  const costs = Array.from({ length: 300 }, () => [1])
  const request = { at: { lane: 'a', limits: [spec] }, rules: ['share'] as const, costs, nowUs }
  return localSpend.take({ ...request, fleet: { pods, rank: 0 } }).granted
}

describe('LocalSpend: limits of a pod that has just lost the store', () => {
  it('pod spends its share of the remaining units if there were enough for all pods', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(lane, [180], 10 * SECOND)
    expect(takes(localSpend, 10.2 * SECOND)).toBe(45)
  })

  it('pod spends nothing after a refusal, because pods that reach the store use the rest', () => {
    const localSpend = new LocalSpend()
    localSpend.refused(lane, [1], 10 * SECOND)
    localSpend.noteFigures(lane, [200], 12 * SECOND)
    expect(takes(localSpend, 12.1 * SECOND)).toBe(0)
  })

  it('pod spends nothing if few units were left within the last window', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(lane, [40], 10 * SECOND)
    localSpend.noteFigures(lane, [200], 12 * SECOND)
    expect(takes(localSpend, 12.1 * SECOND)).toBe(0)
    localSpend.noteFigures(lane, [200], 18 * SECOND)
    expect(takes(localSpend, 18.1 * SECOND)).toBe(50)
  })

  it('pod spends nothing if it already wanted more than its share during an outage', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(lane, [200], 10 * SECOND)
    expect(takes(localSpend, 10.1 * SECOND)).toBe(50)
    localSpend.noteFigures(lane, [150], 11 * SECOND)
    expect(takes(localSpend, 11.1 * SECOND)).toBe(0)
  })

  it('the only pod spends all remaining units', () => {
    const localSpend = new LocalSpend()
    localSpend.refused(lane, [1], 10 * SECOND)
    localSpend.noteFigures(lane, [200], 12 * SECOND)
    expect(takes(localSpend, 12.1 * SECOND, 1)).toBe(200)
  })

  it('pod has its full share again once the window before the outage has passed', () => {
    const localSpend = new LocalSpend()
    localSpend.refused(lane, [1], 10 * SECOND)
    expect(takes(localSpend, 18 * SECOND)).toBe(0)
    expect(takes(localSpend, 18.6 * SECOND)).toBe(50)
  })

  it('lanes of a pool spend one share together', () => {
    const pooled: LimitSpec = { ...windows, id: 'requests@p', span: 'pool' }
    const [a, b] = ['a', 'b'].map((name) => ({ lane: name, pool: 'p', limits: [pooled] }))
    const localSpend = new LocalSpend()
    const costs = Array.from({ length: 30 }, () => [1])
    const fleet = { pods: 4, rank: 0 }
    const take = (at: typeof a) => {
      const request = { at: at as NonNullable<typeof a>, rules: ['share'] as const, costs }
      return localSpend.take({ ...request, fleet, nowUs: 10 * SECOND }).granted
    }
    expect([take(a), take(b), take(a)]).toEqual([30, 20, 0])
    const known = { ref: () => ({ lane: 'a', limits: [] }), poolRef: () => a }
    const unreported = localSpend.takeUnreported(known, 10 * SECOND)
    expect(unreported).toMatchObject([{ at: { pool: 'p' }, ofPool: true, spent: [{ units: 50 }] }])
  })
})

describe('LocalSpend: limits per calendar day', () => {
  const HOUR = 3_600 * SECOND
  const MIDNIGHT = 20_000 * 24 * HOUR
  const perDay: LimitSpec = {
    ...windows,
    algorithm: 'fixed-window',
    limit: 100,
    windowUs: 24 * HOUR,
    day: { offsets: [0], quietUs: 0 },
  }
  const at = { lane: 'a', limits: [perDay] }

  it('pod spends its share of what was left until midnight, and its share of the limit on the next day', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(at, [40], MIDNIGHT - HOUR)
    expect(takes(localSpend, MIDNIGHT - HOUR + SECOND, 4, perDay)).toBe(10)
    expect(takes(localSpend, MIDNIGHT - 1, 4, perDay)).toBe(0)
    expect(takes(localSpend, MIDNIGHT, 4, perDay)).toBe(25)
    expect(takes(localSpend, MIDNIGHT + 23 * HOUR, 4, perDay)).toBe(0)
  })

  it('a day that was nearly used up does not lower the share of the next day', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(at, [1], MIDNIGHT - HOUR)
    localSpend.noteFigures(at, [100], MIDNIGHT + HOUR)
    expect(takes(localSpend, MIDNIGHT + HOUR + SECOND, 4, perDay)).toBe(25)
  })

  it('units spent during an outage are reported to the day in which they were spent', () => {
    const localSpend = new LocalSpend()
    localSpend.noteFigures(at, [100], MIDNIGHT - HOUR)
    expect(takes(localSpend, MIDNIGHT - HOUR, 4, perDay)).toBe(25)
    const known = { ref: () => at, poolRef: () => undefined }
    const [{ spent } = { spent: [] }] = localSpend.takeUnreported(known, MIDNIGHT - 1)
    expect(spent).toEqual([{ limit: 0, stamp: 19_999, units: 25 }])
  })
})
