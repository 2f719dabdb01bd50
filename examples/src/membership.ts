import { createMembership, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

// In production: redisStore({ url }) from 'spillway/redis', and no clock.
const clock = createVirtualClock()
const store = memoryStore({ clock })

const podA = createMembership({ store, clock, pod: 'pod-a' })
const podB = createMembership({ store, clock, pod: 'pod-b', snapshot: () => ({ queued: 12 }) })
const podC = createMembership({ store, clock, pod: 'pod-c' })

async function show(title: string) {
  const members = await podA.members()
  // The name is followed by a random part.
  console.log(`${title}: ${members.map(({ pod }) => pod.slice(0, 5)).join(', ')}`)
}

await clock.advance(1_000)
await show(`${podA.live} pods`)

const members = await podA.members()
console.log('pod-b says:', members.find(({ pod }) => pod === podB.pod)?.snapshot)

await podC.close()
await show('one has left')

// A pod that hangs sends no heartbeats. Its entry expires after `lifeMs`.
const hung = createMembership({ store, clock, pod: 'pod-d', heartbeatMs: '24h', lifeMs: '5s' })
await show('one has come')
await clock.advance(6_000)
await show('and is silent')

await Promise.all([podA.close(), podB.close(), hung.close()])
await store.close()
