import { createSharedRateLimiter } from 'spillway/shared'
import { createHarness, createVendor, sleep } from 'spillway/testing'

// The vendor's actual limit, which is also configured in the fleet.
const limits = [{ limit: 20, windowMs: '1s' }] as const

// Three pods with wrong clocks, each with a connection of its own to one store, 2 to 6 ms away.
const fleet = createHarness({
  seed: 42,
  pods: [{}, { skewMs: -60_000 }, { driftPpm: 300 }],
  connection: { latencyMs: (random) => 2 + 4 * random() },
  create: ({ name, clock, store, random }) =>
    createSharedRateLimiter({ name: 'openai', pod: name, limits, clock, store, random }),
})
const { clock, random } = fleet
const vendor = createVendor({ clock, random, limits, serviceMs: (draw) => 50 + 100 * draw() })

// Four workers per pod request more than the limit, as long as the pod lives.
async function work(pod: (typeof fleet.pods)[number]): Promise<void> {
  while (pod.alive) {
    const answer = await pod.value.acquireWithin('5s').catch(() => undefined)
    if (answer?.allowed) await vendor.call({ signal: pod.signal })
    else await sleep(pod.clock, 100)
  }
}
for (const pod of fleet.pods) for (let i = 0; i < 4; i++) work(pod).catch(() => {})

function report(what: string): void {
  const most = vendor.mostInAnyWindow('1s')
  console.log(`${what}: at most ${most} in any second, ${vendor.calls.throttled} times 429`)
}

await fleet.run(60_000)
report('a quiet minute')

for (const { store } of fleet.pods) store.loseReplies(0.02)
await fleet.run(60_000)
report('every 50th reply lost')

// For half a minute the other pods do not use its share.
fleet.pods[0]?.store.goDown()
await fleet.run(25_000)
report('one pod without a store')

fleet.kill(1)
fleet.pods[0]?.store.comeBack()
await fleet.run(60_000)
report('one pod back, one dead')
