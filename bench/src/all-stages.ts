/** Options of a guard with every stage configured and limits so high that no call is refused. */
import { createSpillway, type Guard, type GuardOptions, type RunOptions } from 'spillway'
import type { Store } from 'spillway/shared'
import type { Preparation } from './measure.js'

export const FAILURE_RATE = 0.5
export const BREAKER_WINDOW_MS = 30_000
export const MINIMUM_CALLS = 10
export const TIMEOUT_MS = 30_000
export const SLOTS = 50
export const PLACES = 450
export const ATTEMPTS = 3
export const FIRST_DELAY_MS = 100
export const LONGEST_DELAY_MS = 10_000

/** Longer than any bench runs. */
export const AN_HOUR_MS = 3_600_000
const WINDOW_MS = 60_000
/** Units per window; no machine reaches this rate. */
const PLENTY = 1e12

export const ALL_STAGES = {
  shed: { maxQueue: PLACES },
  userLimits: [{ per: 'user', limit: 1_000_000_000, windowMs: WINDOW_MS }],
  queue: { size: PLACES, timeoutMs: 5_000 },
  breaker: {
    failureRate: FAILURE_RATE,
    windowMs: BREAKER_WINDOW_MS,
    minimumCalls: MINIMUM_CALLS,
    openMs: AN_HOUR_MS,
  },
  limits: [
    { unit: 'requests', limit: PLENTY, windowMs: WINDOW_MS },
    { unit: 'tokens', limit: PLENTY, windowMs: WINDOW_MS },
  ],
  pace: { limit: 1_000_000_000, windowMs: WINDOW_MS },
  concurrency: { limit: SLOTS },
  timeout: { callMs: TIMEOUT_MS },
  retry: {
    attempts: ATTEMPTS,
    budget: 0.2,
    backoff: 'exponential',
    jitter: 'full',
    baseMs: FIRST_DELAY_MS,
    maxMs: LONGEST_DELAY_MS,
  },
} as const satisfies GuardOptions

/** Options of one call: a user, so that the user limit is charged, and a number of tokens. */
const USERS = Array.from({ length: 1_000 }, (_, index) => `user-${index}`)
let calls = 0
export function callOptions(): RunOptions {
  return { user: USERS[++calls % USERS.length]!, cost: { tokens: 900 } }
}

interface Difference {
  store?: Store
  options?: GuardOptions
}

export function openGuard({ atEnd }: Preparation, { store, options }: Difference = {}): Guard {
  const spillway = createSpillway({ ...(store && { store }) })
  atEnd(() => spillway.close({ graceMs: 0 }))
  return spillway.guard('vendor', { ...ALL_STAGES, ...options })
}
