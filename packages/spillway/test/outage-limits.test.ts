/** Calls that reach the vendor before, during and after an outage. */
import { describe, expect, it } from 'vitest'
import { usualOrLong } from './long-run.js'
import { createOutageFleet } from './outage-fleet.js'

const MOST = 105
const SEEDS = usualOrLong([1], [1, 2, 3, 4, 5, 6])
/** Three callers of a pod, one for each lane, already make ten times the calls that the limit allows. */
const callers = () => usualOrLong(3, 10)

describe.each(SEEDS)('saturated fleet, seed %i', (seed) => {
  it('the fleet stays within the vendor limit when the store hangs and when it answers again', async () => {
    const all = createOutageFleet({ seed, callers })
    await all.run(25_000)
    all.each(({ store }) => {
      store.loseRequests(1)
    })
    await all.run(25_000)
    expect(all.status()).toBe('unreachable')
    all.each(({ store }) => {
      store.loseRequests(0)
    })
    await all.run(2_000)
    expect([0, 1, 2, 3].map(all.status)).toEqual(Array(4).fill('shared'))
    await all.run(25_000)
    await all.stop()
    expect(all.worst()).toBeLessThanOrEqual(MOST)
  })

  it('three lanes of a pool stay within its limit when the store hangs and when it answers again', async () => {
    const all = createOutageFleet({
      seed,
      callers,
      lane: (caller) => `opus-${caller % 3}`,
      guard: {
        limits: [{ limit: 10_000, windowMs: 10_000 }],
        lanes: [{ match: 'opus-*', pool: 'opus' }],
        pools: { opus: { limits: [{ limit: 200, windowMs: 10_000 }] } },
      },
    })
    await all.run(25_000)
    expect(all.used(20_000)).toBeGreaterThan(80)
    all.each(({ store }) => {
      store.loseRequests(1)
    })
    await all.run(25_000)
    expect(all.status()).toBe('unreachable')
    expect(all.used(10_000)).toBeGreaterThan(80)
    all.each(({ store }) => {
      store.loseRequests(0)
    })
    await all.run(2_000)
    expect([0, 1, 2, 3].map(all.status)).toEqual(Array(4).fill('shared'))
    await all.run(25_000)
    await all.stop()
    expect(all.worst()).toBeLessThanOrEqual(MOST)
  })

  it('the fleet stays within the vendor limit when the store restarts empty', async () => {
    const all = createOutageFleet({ seed, callers })
    await all.run(24_000)
    all.each(({ store }) => {
      store.goDown()
    })
    await all.run(3_000)
    all.fleet.restartStore()
    all.each(({ store }) => {
      store.comeBack()
    })
    await all.run(2_000)
    expect(all.status()).toBe('untrusted')
    await all.run(10_000)
    expect([0, 1, 2, 3].map(all.status)).toEqual(Array(4).fill('shared'))
    await all.run(25_000)
    await all.stop()
    expect(all.worst()).toBeLessThanOrEqual(MOST)
  })

  it('the fleet stays within the vendor limit when one pod is cut off', async () => {
    const all = createOutageFleet({ seed, callers })
    await all.run(24_000)
    all.fleet.pods[1]!.store.goDown()
    await all.run(22_000)
    expect(all.status(1)).toBe('unreachable')
    expect(all.status(0)).toBe('shared')
    all.fleet.pods[1]!.store.comeBack()
    await all.run(25_000)
    expect(all.status(1)).toBe('shared')
    await all.stop()
    expect(all.worst()).toBeLessThanOrEqual(MOST)
  })
})
