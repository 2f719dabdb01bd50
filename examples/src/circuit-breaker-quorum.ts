import { onEvent } from 'spillway'
import { createCircuitBreaker, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const store = memoryStore({ clock })
const stop = onEvent(({ type }) => type.startsWith('breaker') && console.log(`  ${type}`))

// One pod's failures are not enough: at least two of the three have to see them.
const join = () =>
  createCircuitBreaker({ name: 'openai', store, clock, consecutiveFailures: 5, quorum: 2 })
const [sick, podB, podC] = [join(), join(), join()]
const pods = [sick, podB, podC]

console.log('one pod has lost its network:')
for (let i = 0; i < 5; i++) sick.record('failure')
for (const pod of pods) {
  const { allowed } = await pod.allow()
  const { state, selfIsolated } = pod.snapshot()
  console.log({ allowed, state, selfIsolated })
}

console.log('the others fail as well:')
for (let i = 0; i < 5; i++) for (const pod of [podB, podC]) pod.record('failure')
console.log(pods.map((pod) => pod.state()))

stop()
await Promise.all(pods.map((pod) => pod.close()))
await store.close()
