import { createRetry, type RetryOptions } from 'spillway/local'
import { createRandom, createVirtualClock } from 'spillway/testing'

/** The waits between six attempts that all fail. */
async function waits(options: RetryOptions) {
  const clock = createVirtualClock()
  const retry = createRetry({ ...options, attempts: 6, clock, random: createRandom(42) })
  const fail = () => Promise.reject(new Error('down'))
  const { attempts } = await clock.until(retry.tryRun(fail))
  const delays = attempts.slice(1).map(({ delayMs }) => String(Math.round(delayMs)).padStart(5))
  const { backoff = 'exponential', jitter = '' } = options
  console.log(backoff.padEnd(12), String(jitter).padEnd(5), ...delays)
}

const base = { baseMs: 100, maxMs: 1_000 }
await waits({ ...base, backoff: 'constant', jitter: 'none' })
await waits({ ...base, backoff: 'linear', jitter: 'none' })
await waits({ ...base, backoff: 'exponential', jitter: 'none' })
await waits({ ...base, backoff: 'exponential', jitter: 'full' })
await waits({ ...base, backoff: 'exponential', jitter: 'equal' })
await waits({ ...base, backoff: 'exponential', jitter: 0.1 })
await waits({ ...base, backoff: 'decorrelated' })
