/**
 * Fairness between users: how much one user, address, tier or endpoint may ask for, counted for the
 * whole fleet. All levels that apply to a request are checked together: one that refuses costs
 * nothing on the others. For a vendor's contract use the rate limiter: a token bucket lets a burst
 * and then a steady rate through, which is more than its limit in the first window.
 */

import { integer, object, optional, text, validate } from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import type { Store } from '../../store/port.js'
import { readStore } from '../store-option.js'
import { readLevels, type Subject, type UserLevel } from './levels.js'
import { createOwnCharges } from './own-charges.js'

export interface UserLimitsOptions {
  store: Store
  /** Told apart from other user limits in the same store by this. Default: no name. */
  name?: string
  levels: readonly UserLevel[]
  /** Among how many pods levels with the outage rule `share` are shared out. Default: 1. */
  expectedPods?: number
  /** Default: the system's clock. */
  clock?: Clock
  /** Default: `Math.random`. */
  random?: Random
}

export interface UserLimitResult {
  allowed: boolean
  /** The level these figures are of: the one that refused, or the one with least left. */
  level: UserLevel['per'] | undefined
  remaining: number
  /** Milliseconds until that level has everything again. */
  resetMs: number
  /** Milliseconds until this request would be allowed; zero if it is. */
  retryAfterMs: number
}

export interface UserLimits {
  /** Charges a request on every level that applies to it, or on none. */
  check(subject: Subject & { cost?: number }): Promise<UserLimitResult>
}

const UNLIMITED: UserLimitResult = {
  allowed: true,
  level: undefined,
  remaining: Number.POSITIVE_INFINITY,
  resetMs: 0,
  retryAfterMs: 0,
}

const readOptions = object({
  store: readStore,
  name: optional(text()),
  levels: readLevels,
  expectedPods: optional(integer({ min: 1 }), 1),
  clock: clockOption,
  random: randomOption,
})

export function createUserLimits(options: UserLimitsOptions): UserLimits {
  const charges = createOwnCharges(validate('userLimits', options, readOptions))
  return {
    async check({ cost = 1, ...subject }) {
      if (!Number.isInteger(cost) || cost < 1) validate('cost', cost, integer({ min: 1 }))
      const asked = charges.requestFor(subject, cost)
      if (asked === undefined) return UNLIMITED
      const { refusedBy, tightest, remaining, resetUs, waitUs } = await charges.charge(asked)
      return {
        allowed: refusedBy === 0,
        level: asked.levels[tightest - 1]?.per,
        remaining,
        resetMs: resetUs / 1_000,
        retryAfterMs: waitUs / 1_000,
      }
    },
  }
}
