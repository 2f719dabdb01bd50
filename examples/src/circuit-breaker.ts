import { SpillwayError } from 'spillway'
import { type CircuitBreaker, createCircuitBreaker, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

// In production: redisStore({ url }) from 'spillway/redis', and no clock.
const clock = createVirtualClock()
const store = memoryStore({ clock })

// Two pods of one fleet share one breaker, because it has the same name.
const policy = {
  failureRate: 0.5,
  minimumCalls: 10,
  openMs: '5s',
  probes: 1,
  successes: 2,
} as const
const podA = createCircuitBreaker({ name: 'openai', store, clock, ...policy })
const podB = createCircuitBreaker({ name: 'openai', store, clock, ...policy })

let down = false
let calls = 0
async function callVendor() {
  calls++
  await new Promise<void>((resolve) => clock.schedule(100, resolve))
  if (down) throw new Error('the vendor is down')
  return 'an answer'
}

/** Makes this number of requests at once; prints their results and how many reached the vendor. */
async function ask(title: string, pod: CircuitBreaker, requests: number) {
  calls = 0
  const asked = Array.from({ length: requests }, () =>
    pod.run(callVendor).catch((error) => (error instanceof SpillwayError ? error.code : 'failed')),
  )
  const answers = new Set(await clock.until(Promise.all(asked)))
  console.log(`${title}: ${[...answers].join(', ')}; ${calls} of ${requests} called`)
}

await ask('all is well, pod B', podB, 4)

podB.onChange(({ from, to }) => console.log(`  pod B hears: ${from} -> ${to}`))
down = true
await ask('the vendor fails, pod A', podA, 10)
await ask('pod B has seen none of it', podB, 1_000)

await clock.advance(5_000)
await ask('5 s later, a probe', podA, 1_000)
down = false
await clock.advance(5_000)
await ask('another one', podB, 1_000)
await ask('and a second', podA, 1_000)
await clock.advance(2_500)
await ask('halfway back in', podA, 1_000)
await clock.advance(2_500)
await ask('all is well again', podA, 1_000)

await Promise.all([podA.close(), podB.close()])
await store.close()
