import { createSpillway, onEvent } from 'spillway'
import { createHarness } from 'spillway/testing'

// Four pods and one store, on a virtual clock. In production: redisStore({ url }), and no harness.
const fleet = createHarness({
  seed: 1,
  pods: 4,
  create: ({ name, store, clock, random }) => {
    const spillway = createSpillway({ store, clock, random, pod: name, expectedPods: 4 })
    return {
      spillway,
      openai: spillway.guard('openai', {
        timeout: { callMs: '30s' },
        limits: [{ limit: 100, windowMs: '10s', outage: 'share' }],
        breaker: { failureRate: 0.5, outage: 'local' },
        userLimits: [{ per: 'user', limit: 60, windowMs: '1m', outage: 'allow' }],
      }),
    }
  },
})
const { spillway, openai } = fleet.pods[0]!.value
const stop = onEvent((event) => {
  if (event.type === 'store.degraded') console.log(`  ${event.name}: ${event.status}, ${event.why}`)
  if (event.type === 'store.restored') console.log(`  ${event.name}: shared again`)
})

/** Makes `count` calls at once and reports how many were allowed. */
async function callsOf(count: number): Promise<string> {
  const calls = Array.from({ length: count }, () => openai.run(() => 'fine', { user: 'ann' }))
  const ends = await fleet.settle(Promise.allSettled(calls))
  const refused = ends.find((each) => each.status === 'rejected')
  const passed = ends.filter(({ status }) => status === 'fulfilled').length
  return `${passed} of ${count} pass${refused === undefined ? '' : `; ${refused.reason.message}`}`
}

await fleet.run(2_000)
console.log('at the start:', spillway.health().status)

for (const { store } of fleet.pods) store.goDown()
await fleet.run(15_000)
console.log('unreachable:', spillway.health().status)
console.log(await callsOf(30))

for (const { store } of fleet.pods) store.comeBack()
await fleet.run(2_000)
console.log('reachable again:', spillway.health().status)
stop()
for (const { value } of fleet.pods) void value.spillway.close()
await fleet.run(1_000)
