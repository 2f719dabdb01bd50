import { createBulkhead, createPodMetrics } from 'spillway/local'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const metrics = createPodMetrics({ windowMs: '10s', clock })
const slots = createBulkhead({ limit: 1, queue: { size: 10 }, metrics, clock })

async function vendor(status: number) {
  await sleep(clock, status === 503 ? 100 : 20)
  if (status !== 200) throw Object.assign(new Error(), { status })
}

function print() {
  const { calls, rps, errorRate, queueWaitMs, p50Ms, p99Ms } = metrics.snapshot()
  console.log(`${calls} calls, ${rps} a second, ${Math.round(errorRate * 100)} % failed`)
  console.log(`  in line ${queueWaitMs} ms, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`)
}

// For ten seconds, ten calls a second that wait for the same slot.
const statuses = [200, 200, 200, 200, 200, 200, 200, 200, 429, 503]
for (let second = 1; second <= 10; second++) {
  const calls = statuses.map((status) => slots.run(() => metrics.measure(() => vendor(status))))
  await Promise.all([Promise.allSettled(calls), clock.advance(1_000)])
}
print()

// Calls older than the window no longer count.
await clock.advance(10_500)
print()
