import { createFeatureManager, createSpillway } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock() // leave it out in production
const spillway = createSpillway({ clock })
const reviews = spillway.guard('reviews', {
  timeout: { callMs: '30s' },
  breaker: { consecutiveFailures: 3, openMs: '30s' },
})

const load = { cpu: 0.4, memory: 0.5 }
const features = createFeatureManager({
  features: {
    checkout: { importance: 'critical' },
    catalogue: { importance: 'high' },
    reviews: { importance: 'normal', dependsOn: ['reviews'] },
    analytics: { importance: 'low' },
    animations: { importance: 'optional' },
  },
  dependencies: { reviews },
  load: () => load, // default: CPU and memory of this process
  holdMs: '5s',
  clock,
})

function show(what: string): void {
  const on = features.snapshot().features.filter((feature) => feature.on)
  console.log(
    `${what.padEnd(20)} ${features.level.padEnd(13)} ${on.map(({ name }) => name).join(', ')}`,
  )
}

show('all well')
load.cpu = 0.75
await clock.advance(1_000)
show('75 % CPU')
load.cpu = 0.95
await clock.advance(1_000)
show('95 % CPU')
load.cpu = 0.2
await clock.advance(2_000)
show('two seconds of peace')
await clock.advance(5_000)
show('seven')

for (let i = 0; i < 3; i++) {
  await reviews.run(() => Promise.reject(new Error('503'))).catch(() => {})
}
await clock.advance(1_000)
show('reviews are down')
const text = await features.run(
  'reviews',
  () => 'five stars',
  () => 'no reviews right now',
)
console.log(text)

features.close()
await spillway.close()
