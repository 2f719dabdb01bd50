/** What the benches of a guard are beside, each with all that it has of the same; and what all of them call. */
import {
  bulkhead,
  circuitBreaker,
  ExponentialBackoff,
  fullJitterGenerator,
  handleAll,
  type ICancellationContext,
  retry,
  SamplingBreaker,
  TimeoutStrategy,
  timeout,
  wrap,
} from 'cockatiel'
import OpossumBreaker from 'opossum'
import {
  AN_HOUR_MS,
  ATTEMPTS,
  BREAKER_WINDOW_MS,
  FAILURE_RATE,
  FIRST_DELAY_MS,
  LONGEST_DELAY_MS,
  MINIMUM_CALLS,
  PLACES,
  SLOTS,
  TIMEOUT_MS,
} from '../all-stages.js'
import type { Preparation } from '../measure.js'

/** What every contender calls. */
export const work = async () => 1

/** The same for one that wants to know when to stop, as `fetch` does. */
export const heedful = async ({ signal }: Pick<ICancellationContext, 'signal'>) =>
  signal.aborted ? 0 : 1

/** All that it has of the same: breaker, timeout, slots. Without percentiles and snapshots. */
export function openOpossum({ atEnd }: Preparation) {
  const breaker = new OpossumBreaker(work, {
    errorThresholdPercentage: FAILURE_RATE * 100,
    rollingCountTimeout: BREAKER_WINDOW_MS,
    rollingCountBuckets: 10,
    volumeThreshold: MINIMUM_CALLS,
    resetTimeout: AN_HOUR_MS,
    timeout: TIMEOUT_MS,
    capacity: SLOTS,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  })
  atEnd(() => breaker.shutdown())
  return breaker
}

export function createCockatiel() {
  return wrap(
    retry(handleAll, {
      // Cockatiel does not count the first attempt.
      maxAttempts: ATTEMPTS - 1,
      backoff: new ExponentialBackoff({
        generator: fullJitterGenerator,
        initialDelay: FIRST_DELAY_MS,
        maxDelay: LONGEST_DELAY_MS,
      }),
    }),
    circuitBreaker(handleAll, {
      halfOpenAfter: AN_HOUR_MS,
      breaker: new SamplingBreaker({
        threshold: FAILURE_RATE,
        duration: BREAKER_WINDOW_MS,
        // Calls a second, not in the window.
        minimumRps: MINIMUM_CALLS / (BREAKER_WINDOW_MS / 1_000),
      }),
    }),
    bulkhead(SLOTS, PLACES),
    timeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
  )
}
