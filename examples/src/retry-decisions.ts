import { createDeadline, onEvent, runWithDeadline } from 'spillway'
import { createRetry, type RetryRunOptions } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const common = { attempts: 2, baseMs: 100, jitter: 'none', clock } as const
const retry = createRetry(common)

onEvent((event) => {
  if (event.type === 'retry.scheduled') console.log(`  again in ${event.delayMs} ms`)
  if (event.type === 'retry.stopped') console.log(`  stopped: ${event.because}`)
})

function answer(status: number, headers: Record<string, string> = {}) {
  return () => Promise.reject(Object.assign(new Error(`status ${status}`), { status, headers }))
}

async function call(title: string, fn: () => Promise<never>, options: RetryRunOptions = {}) {
  console.log(title)
  await clock.until(retry.tryRun(fn, options))
}

await call('503', answer(503))
await call('400', answer(400))
await call('503, not idempotent', answer(503), { idempotent: false })
await call('503, with a key', answer(503), { idempotent: false, idempotencyKey: 'order-17' })
await call('429, come back in 2 s', answer(429, { 'retry-after': '2' }))
await call('429, come back in 2 h', answer(429, { 'retry-after': '7200' }))
await runWithDeadline(createDeadline(50, clock), () => call('503, 50 ms left', answer(503)))

const leaving = new AbortController()
clock.schedule(50, () => leaving.abort())
await call('503, the caller leaves', answer(503), { signal: leaving.signal })

console.log('503, nothing in the budget')
await clock.until(createRetry({ ...common, budget: 0 }).tryRun(answer(503)))
