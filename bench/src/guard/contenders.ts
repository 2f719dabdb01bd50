/**
 * The peers of the guard benches, each with all the stages it has in common with Spillway, and the function they
 * call.
 */
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

/** The function that every contender calls. */
export const work = async () => 1

/** The function for contenders that pass an abort signal, as for `fetch`. */
export const heedful = async ({ signal }: Pick<ICancellationContext, 'signal'>) =>
  signal.aborted ? 0 : 1

/** Breaker, timeout and concurrency limit of the peer, without percentiles and snapshots. */
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
        // `minimumRps` is calls per second, not calls per window.
        minimumRps: MINIMUM_CALLS / (BREAKER_WINDOW_MS / 1_000),
      }),
    }),
    bulkhead(SLOTS, PLACES),
    timeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
  )
}
