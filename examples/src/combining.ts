import { setTimeout as sleep } from 'node:timers/promises'
import {
  createBulkhead,
  createPodMetrics,
  createRetry,
  createRetryBudget,
  createTimeout,
} from 'spillway/local'

const metrics = createPodMetrics()
const slots = createBulkhead({ name: 'quotes', limit: 8, queue: { size: 50 }, metrics })
const conditions = () => ({
  errorRate: metrics.errorRate(),
  queueWaitMs: metrics.queueWaitMs(),
  slotsInUse: slots.active / slots.limit,
})
const budget = createRetryBudget({ ratio: 0.2, conditions })
const retry = createRetry({ name: 'quotes', attempts: 3, baseMs: 10, budget })
const inAll = createTimeout({ name: 'quotes, in all', totalMs: '5s' })
const perCall = createTimeout({ name: 'quotes', callMs: 500 })

const getQuote = (id: number) =>
  inAll.run(({ signal }) => retry.run(({ attempt }) => tryOnce(id, attempt, signal), { signal }))

function tryOnce(id: number, attempt: number, signal: AbortSignal) {
  const timed = () => perCall.run((call) => vendor(id, attempt, call.signal), { signal })
  return slots.run(() => metrics.measure(timed, { signal }), { signal })
}

let calls = 0
let down = false
async function vendor(id: number, attempt: number, signal: AbortSignal) {
  calls++
  if (down || (attempt === 1 && id % 20 === 5)) throw Object.assign(new Error(), { status: 503 })
  return sleep(attempt === 1 && id % 20 === 10 ? 60_000 : 5, id, { signal })
}

for (let id = 1; id <= 40; id++) await getQuote(id)
console.log(`40 quotes took ${calls} calls, ${Math.round(metrics.errorRate() * 100)} % failed`)
calls = 0
down = true
for (let id = 1; id <= 40; id++) await getQuote(id).catch(() => {})
console.log(`vendor down: 40 requests made ${calls} calls`, budget.snapshot())
