/** Random store faults over hours of virtual time: limits hold and pods return to shared state. */
import { createRandom } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from './long-run.js'
import { createOutageFleet, type OutageFleet } from './outage-fleet.js'

const DURATION_MS = usualOrLong(450_000, 36_000_000)
const PODS = 3

/** Each fault starts something and returns the function that ends it. */
const FAULTS: Record<string, (all: OutageFleet, pod: number) => () => void> = {
  gone(all) {
    all.each(({ store }) => store.goDown())
    return () => all.each(({ store }) => store.comeBack())
  },
  'restarted empty'(all) {
    all.each(({ store }) => store.goDown())
    return () => {
      all.fleet.restartStore()
      all.each(({ store }) => store.comeBack())
    }
  },
  hangs(all) {
    all.each(({ store }) => store.loseRequests(1))
    return () => all.each(({ store }) => store.loseRequests(0))
  },
  'answers are lost'(all) {
    all.each(({ store }) => store.loseReplies(1))
    return () => all.each(({ store }) => store.loseReplies(0))
  },
  'far away'(all) {
    all.each(({ store }) => store.setLatency(200))
    return () => all.each(({ store }) => store.setLatency(1))
  },
  'one pod cut off'(all, pod) {
    all.fleet.pods[pod]?.store.goDown()
    return () => all.fleet.pods[pod]?.store.comeBack()
  },
}

async function randomFaults(seed: number, forMs: number) {
  const all = createOutageFleet({
    seed,
    pods: PODS,
    limit: 60,
    windowMs: 10_000,
    callers: () => 2,
    // Callers wait for their turn, so that the history is not one of refusals.
    guard: {
      limits: [{ limit: 60, windowMs: 10_000 }],
      breaker: { consecutiveFailures: 5, openMs: '2s' },
      queue: { size: 10, timeoutMs: '30s' },
    },
  })
  const random = createRandom(seed)
  const history: string[] = []
  const names = Object.keys(FAULTS)
  let slowest = { sharedMs: 0, name: '' }
  while (all.fleet.clock.now() < forMs) {
    await all.run(15_000 + random() * 20_000)
    const name = names[Math.floor(random() * names.length)]!
    const pod = Math.floor(random() * PODS)
    const end = FAULTS[name]!(all, pod)
    const lastsMs = 200 + random() * 25_000
    await all.run(lastsMs)
    end()
    const endedMs = all.fleet.clock.now()
    const isShared = () => all.fleet.pods.every((_, index) => all.status(index) === 'shared')
    for (let ms = 0; ms < 20_000 && !isShared(); ms += 100) await all.run(100)
    const sharedMs = all.fleet.clock.now() - endedMs
    if (sharedMs > slowest.sharedMs) slowest = { sharedMs, name }
    expect(isShared(), `${name} at ${endedMs}`).toBe(true)
    history.push(
      `${name} ${pod} ${Math.round(lastsMs)} ${Math.round(sharedMs)} ${all.vendor.arrivalCount} ` +
        JSON.stringify(all.refusals),
    )
  }
  const { refusals } = all
  await all.stop()
  return { history, refusals, worst: all.worst(), slowest, calls: all.vendor.arrivalCount, all }
}

describe('random store faults', () => {
  it('random store faults exceed no limit, lose no call and end with shared state, the same for the same seed', async ({
    annotate,
  }) => {
    const one = await randomFaults(8, DURATION_MS)
    await annotate(
      `${one.history.length} faults, ${one.calls} calls, worst window ${one.worst.toFixed(1)} %, ` +
        `shared again after ${one.slowest.sharedMs} ms at most (${one.slowest.name})`,
    )
    expect(one.worst).toBeLessThanOrEqual(105)
    expect(one.refusals.STORE_UNAVAILABLE ?? 0).toBe(0)
    expect(one.refusals.other ?? 0).toBe(0)
    expect(one.slowest.sharedMs).toBeLessThanOrEqual(10_500 + 1_000)
    const again = await randomFaults(8, usualOrLong(DURATION_MS / 3, DURATION_MS))
    expect(again.history.length).toBeGreaterThan(3)
    expect(again.history).toEqual(one.history.slice(0, again.history.length))
  })
})
