import { createSpillway } from 'spillway'
import { createRandom, createVendor, createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const random = createRandom(1)
const vendor = createVendor({ clock, random, capacity: 40, serviceMs: 100 })
const spillway = createSpillway({ clock, random })

// The guard does not know the vendor's capacity.
const guard = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  queue: { size: 50, timeoutMs: '1s' },
  concurrency: { adaptive: 'gradient2', max: 200 },
})

async function busyFor(seconds: number) {
  for (let ms = 0; ms < seconds * 1_000; ms += 2) {
    guard.run(() => vendor.call()).catch(() => {})
    await clock.advance(2)
  }
}

for (const capacity of [40, 20, 40]) {
  vendor.resize(capacity)
  await busyFor(15)
  const [lane] = guard.snapshot().laneLimits
  const near = Math.abs((lane?.limit ?? 0) - capacity) <= capacity * 0.2
  const baseline = `${Math.round((lane?.baselineMs ?? 0) / 10) * 10} ms when idle`
  console.log(`capacity ${capacity}: found within a fifth: ${near}, ${baseline}`)
}
await clock.until(spillway.close())
