/** Random histories of one limit per calendar day, for every store that counts it. */
import { expect } from 'vitest'
import { offsetsOf } from '../src/shared/rate-limiter/settings/time-zone.js'
import { DAY_US } from '../src/store/calendar-day.js'
import type { LimitSpec } from '../src/store/limit-spec.js'
import type { LimitStore } from '../src/store/port.js'
import { fc } from './fast-check.js'

/** Zones with clocks that change at 2 o'clock, at midnight, by half an hour, and never. */
const ZONES = ['America/Los_Angeles', 'Africa/Cairo', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC']
const HOUR_US = 3_600_000_000
const QUIET_US = 100_000
/** The virtual clock is not exact to the microsecond, so all times are whole milliseconds. */
const MS_US = 1_000

/** Two days before clocks change in most of the zones. */
const STARTS = ['2096-03-08', '2096-04-25', '2096-10-05', '2096-10-24', '2096-11-02']

export const dayHistories = fc.record({
  timeZone: fc.constantFrom(...ZONES),
  start: fc.constantFrom(...STARTS),
  limit: fc.integer({ min: 1, max: 30 }),
  steps: fc.array(
    fc.record({
      pauseUs: fc.oneof(
        { weight: 6, arbitrary: fc.nat(HOUR_US / MS_US).map((ms) => ms * MS_US) },
        { weight: 1, arbitrary: fc.nat((30 * HOUR_US) / MS_US).map((ms) => ms * MS_US) },
        // Just before, at and after midnight: the wait of the last refusal, give or take a little.
        { weight: 3, arbitrary: fc.constantFrom('wait' as const, 'almost' as const) },
      ),
      costs: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 }),
      /** Units that the first call of the step gives back later. */
      unused: fc.nat(3),
    }),
    { minLength: 60, maxLength: 120 },
  ),
})

export type DayHistory = typeof dayHistories extends fc.Arbitrary<infer T> ? T : never

/**
 * Replays a history. No calendar day has more units than the limit, days as JavaScript's own calendar has them, and a refused
 * call is granted exactly after its wait.
 */
export async function replayDays(
  store: LimitStore,
  { timeZone, start, limit, steps }: DayHistory,
  setTime: (nowUs: number) => void | Promise<void>,
): Promise<{ granted: number; refused: number; days: number }> {
  let nowUs = Date.parse(`${start}T00:00:00Z`) * 1_000
  const day = { offsets: offsetsOf(timeZone, nowUs / 1_000), quietUs: QUIET_US }
  const window = { algorithm: 'fixed-window', windowUs: DAY_US, slices: 30, burst: 0 } as const
  const limits: LimitSpec[] = [{ ...window, id: 'requests', limit, span: 'lane', day }]
  const ref = { guard: 'g', lane: 'a', limits, version: 0 }
  const dateFormat = new Intl.DateTimeFormat('en-CA', { timeZone })
  const byDate = new Map<string, number>()
  const counts = { granted: 0, refused: 0 }
  let [sequence, waitUs] = [0, 0]
  const take = async (costs: readonly number[]) => {
    await setTime(nowUs)
    return store.take({ ...ref, costs: costs.map((each) => [each]) })
  }
  for (const { pauseUs, costs, unused } of steps) {
    if (pauseUs === 'almost') nowUs += Math.max(0, waitUs - MS_US)
    else nowUs += pauseUs === 'wait' ? waitUs : pauseUs
    const reply = await take(costs)
    const granted = costs.slice(0, reply.granted).map((each) => Math.min(each, limit))
    // What is granted reaches the vendor up to 100 ms later, on either side of midnight.
    for (const lateUs of [0, QUIET_US - MS_US]) {
      const date = `${lateUs} ${dateFormat.format(Math.floor((nowUs + lateUs) / 1_000))}`
      const units = (byDate.get(date) ?? 0) + granted.reduce((sum, each) => sum + each, 0)
      expect(units, `units on ${date} in ${timeZone}`).toBeLessThanOrEqual(limit)
      byDate.set(date, units)
    }
    counts.granted += reply.granted
    waitUs = reply.waitUs
    const [first] = granted
    if (first !== undefined && unused > 0) {
      const delta = -Math.min(first, unused)
      const settlements = [{ limit: 0, stamp: reply.stamps[0] as number, delta }]
      await store.settle({ ...ref, pod: 'p', sequence: ++sequence, settlements })
      for (const lateUs of [0, QUIET_US - MS_US]) {
        const date = `${lateUs} ${dateFormat.format(Math.floor((nowUs + lateUs) / 1_000))}`
        byDate.set(date, (byDate.get(date) as number) + delta)
      }
      waitUs = 0
    }
    if (reply.waitUs === 0 || waitUs === 0) continue
    counts.refused++
    const refused = costs[reply.granted] as number
    nowUs += waitUs - MS_US
    expect((await take([refused])).granted).toBe(0)
    nowUs += MS_US
    await setTime(nowUs)
    const [figures] = (await store.figures(ref)).limits
    expect(figures).toMatchObject({ used: 0, remaining: limit, waitUs: 0 })
    waitUs = 0
  }
  return { ...counts, days: byDate.size / 2 }
}
