import { createPodMetrics } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const metrics = createPodMetrics({ windowMs: '10s', clock })

function print() {
  const { calls, errorRate, queueWaitMs, rps, p50Ms, p99Ms } = metrics.snapshot()
  const percent = (errorRate * 100).toFixed(1)
  console.log(`${calls} calls, ${rps} a second, ${percent} % failed`)
  console.log(`  in line ${queueWaitMs} ms, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`)
}

// Ten seconds of traffic: every tenth call fails, every twentieth is refused by the vendor.
for (let call = 1; call <= 100; call++) {
  metrics.recordQueueWait(call % 2 === 0 ? 10 : 0)
  if (call % 20 === 0) metrics.record(5, 'throttled')
  else if (call % 10 === 0) metrics.record(900, 'failure')
  else metrics.record(call, 'success')
  await clock.advance(100)
}
print()

// What is older than the window is forgotten.
await clock.advance(10_500)
print()
