/** When a key is quarantined, and for how long: each key is a lane of a circuit breaker with this policy. */
import { object, validate } from '../../core/options/checks.js'
import {
  type CheckedPolicy,
  policyFields,
  readingPolicy,
  toSpec,
} from '../circuit-breaker/options.js'

/**
 * Consecutive answers that call a key invalid before it is quarantined. A single one may be a mistake of the vendor.
 */
const INVALID_IN_A_ROW = 3
const MINUTE_MS = 60_000

/** Wait after an answer that names no reset time. */
export const UNKNOWN_RESET_MS = 5 * MINUTE_MS

/** One probe tests the key. Each time it fails, the next wait is twice as long, up to an hour. */
export const KEY_POLICY: CheckedPolicy = validate(
  'keyQuarantine',
  {
    consecutiveFailures: INVALID_IN_A_ROW,
    windowMs: 5 * MINUTE_MS,
    openMs: MINUTE_MS,
    openFactor: 2,
    maxOpenMs: 60 * MINUTE_MS,
    probes: 1,
    successes: 1,
    rampMs: 0,
  },
  readingPolicy(object(policyFields)),
)

export const KEY_SPEC = toSpec(KEY_POLICY)
