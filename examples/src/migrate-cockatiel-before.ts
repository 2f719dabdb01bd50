import {
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from 'cockatiel'

let calls = 0
async function search(signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  calls++
  if (calls < 3) throw new Error('503 from the search API')
  return 'found'
}

const policy = wrap(
  retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff({ initialDelay: 10 }) }),
  circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) }),
  timeout(2_000, TimeoutStrategy.Aggressive),
)

console.log(await policy.execute(({ signal }) => search(signal)), 'after', calls, 'calls')
