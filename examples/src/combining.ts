import { setTimeout as sleep } from 'node:timers/promises'
import { type CallEnd, judge } from 'spillway'
import {
  createBulkhead,
  createPodMetrics,
  createRetry,
  createRetryBudget,
  createTimeout,
} from 'spillway/local'

const metrics = createPodMetrics()
const slots = createBulkhead({ name: 'quotes', limit: 8, queue: { size: 50 } })
const conditions = () => ({
  errorRate: metrics.errorRate(),
  queueWaitMs: metrics.queueWaitMs(),
  slotsInUse: slots.active / slots.limit,
})
const budget = createRetryBudget({ ratio: 0.2, conditions })
const retry = createRetry({ name: 'quotes', attempts: 3, baseMs: 10, budget })
const inAll = createTimeout({ name: 'quotes, in all', totalMs: '2s' })
const perCall = createTimeout({ name: 'quotes', callMs: 100 })

/** From the outside in: time in all, retry, slot, time for one call, the call. */
const getQuote = (id: number) =>
  inAll.run(({ signal }) => retry.run(({ attempt }) => tryOnce(id, attempt, signal), { signal }))

function tryOnce(id: number, attempt: number, signal: AbortSignal) {
  const queuedMs = performance.now()
  const inSlot = () => {
    metrics.recordQueueWait(performance.now() - queuedMs)
    return measured(() => perCall.run((call) => vendor(id, attempt, call.signal), { signal }))
  }
  return slots.run(inSlot, { signal })
}

function measured<T>(call: () => Promise<T>): Promise<T> {
  const startMs = performance.now()
  const record = (end: CallEnd) => metrics.record(performance.now() - startMs, judge(end).outcome)
  const work = call()
  work.then(
    (value) => record({ value }),
    (error) => record({ error }),
  )
  return work
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
