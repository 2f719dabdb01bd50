import { createRetry, createRetryBudget, type RetryConditions } from 'spillway/local'

// One retry per five requests, for all callers of this budget together.
let known: RetryConditions = {}
const budget = createRetryBudget({ ratio: 0.2, minimum: 3, conditions: () => known })
const retry = createRetry({ attempts: 3, baseMs: 1, maxMs: 1, budget })

// The vendor is down. With three attempts each it would get 300 calls.
let calls = 0
for (let request = 0; request < 100; request++) {
  await retry.tryRun(() => {
    calls++
    throw new Error('down')
  })
}
console.log(budget.snapshot())
console.log(`100 requests made ${calls} calls`)

// Overload of the pod reduces retries, even if the budget is not used up.
const conditions: RetryConditions[] = [
  { errorRate: 0.1 },
  { errorRate: 0.3 },
  { errorRate: 0.6 },
  { queueWaitMs: 2_500 },
  { slotsInUse: 0.95 },
  { breakerOpen: true },
]
for (known of conditions) {
  console.log(`${JSON.stringify(known)}: ${budget.allowedRetries()} retries for one call`)
}
