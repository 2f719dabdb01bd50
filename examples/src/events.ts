import { onEvent } from 'spillway'
import { createBulkhead, createRateLimiter, createRetry, createTimeout } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const brief = (_key: string, value: unknown) => (value instanceof Error ? value.message : value)
const stop = onEvent(({ type, ...fields }) => console.log(type, JSON.stringify(fields, brief)))

const clock = createVirtualClock()
const forever = () => new Promise<never>(() => {})

const limiter = createRateLimiter({ name: 'mail', limit: 1, windowMs: '1s', clock })
limiter.tryAcquire()
limiter.tryAcquire()

// One call takes the only slot and times out, but its work continues. Another call is refused.
const slots = createBulkhead({ name: 'db', limit: 1, graceMs: '1s', clock })
const timeout = createTimeout({ name: 'db', callMs: 200, clock })
const calls = [slots.run(() => timeout.run(forever)), slots.run(() => 'never runs')]
await clock.until(Promise.allSettled(calls))
await clock.advance(1_000)

// Two attempts, classified by a function that throws.
const classify = () => {
  throw new Error('a bug in classify')
}
const retry = createRetry({ name: 'vendor', attempts: 2, jitter: 'none', classify, clock })
await clock.until(retry.tryRun(() => Promise.reject(new Error('down'))))

stop()
