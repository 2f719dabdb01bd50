import { SpillwayError } from 'spillway'
import { createCallQueue } from 'spillway/http'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const queue = createCallQueue({ limit: 2, size: 40, targetMs: 50, intervalMs: 100, clock })

// Forty requests at once, each takes 20 ms: the last would wait 400 ms.
const counts: Record<string, number> = {}
const requests = Array.from({ length: 40 }, async () => {
  try {
    await queue.run(() => sleep(clock, 20))
    counts.served = (counts.served ?? 0) + 1
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    counts[error.code] = (counts[error.code] ?? 0) + 1
  }
})

await clock.advance(200)
console.log(`standing: ${queue.snapshot().standing}`)
const arrivedMs = clock.now()
await clock.until(queue.run(() => sleep(clock, 20)))
console.log(`a new request took ${clock.now() - arrivedMs} ms`)

await clock.until(Promise.all(requests))
console.log(counts)
queue.close()
