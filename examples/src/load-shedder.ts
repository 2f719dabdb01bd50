import { createLoadShedder, type ShedRequest } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()

// Built-in signals need only their limits. This one is set by the example.
let busy = 0.3
const shedder = createLoadShedder({
  name: 'web',
  cpu: 0.8,
  sensors: { cpu: () => busy },
  tiers: { free: 0.7, pro: 0.9 },
  clock,
})

const requests: Record<string, ShedRequest> = {
  free: { tier: 'free', user: 'ann', priority: 'low' },
  pro: { tier: 'pro', user: 'bob' },
  premium: { tier: 'premium', user: 'eve', priority: 'high' },
  health: { endpoint: '/health/live' },
}

for (busy of [0.3, 0.6, 0.76, 1]) {
  shedder.check()
  await clock.advance(100)
  const served = Object.keys(requests).filter((name) => shedder.check(requests[name]) === undefined)
  const { pressure } = shedder.snapshot()
  console.log(`CPU at ${busy}, pressure ${pressure.toFixed(2)}: serves ${served.join(', ')}`)
}

// Beyond the limit a part of each priority is refused, always for the same users.
const users = Array.from({ length: 1_000 }, (_, number) => `user-${number}`)
for (const priority of ['high', 'normal', 'low'] as const) {
  const refused = users.filter((user) => shedder.check({ user, priority, tier: 'premium' }))
  console.log(`${priority}: ${refused.length} of 1000 users are refused`)
}

await shedder.run(() => 'served', requests.free).catch((error) => console.log(error.message))
shedder.close()
