/**
 * Fairness between users: how much one user, address, tier or endpoint may request, counted for the
 * whole fleet. All levels that apply to a request are checked together; a refusal by one costs
 * nothing on the others. For a vendor's limit use the shared rate limiter: a token bucket grants a
 * burst and then a steady rate, which is more than the limit in the first window.
 */

import { integer, object, optional, text, validate } from '../../core/options/checks.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import type { Store } from '../../store/port.js'
import { readStore } from '../store-option.js'
import { createUserCharges } from './charges.js'
import { readLevels, type Subject, type UserLevel } from './levels.js'

/** Options of `createUserLimits()`. */
export interface UserLimitsOptions {
  /** The store that the pods share. */
  store: Store
  /** Separates these user limits from others in the same store. Default: no name. */
  name?: string
  /** The levels; all are charged together or none. */
  levels: readonly UserLevel[]
  /** Number of pods that share levels with the outage rule `share`. Range: integers from 1. Default: 1. */
  expectedPods?: number
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** Whether a request is within its user limits, and what is left. */
export interface UserLimitResult {
  /** Whether the request is within its limits. */
  allowed: boolean
  /** The level of these figures: the one that refused, or that has least left. */
  level: UserLevel['per'] | undefined
  /** Units left of the tightest level. */
  remaining: number
  /** Milliseconds until that level is full again. */
  resetMs: number
  /** Milliseconds until this request would be granted; 0 if it was. */
  retryAfterMs: number
}

/** Limits by user, tier, address or endpoint, shared by all pods. Created by `createUserLimits()`. */
export interface UserLimits {
  /**
   * Charges a request on every level that applies to it, or on none.
   * @param subject - The user, tier, address and endpoint of the request, and its cost in units. Range:
   * integers from 1. Default: 1.
   */
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

/**
 * Creates limits by user, tier, address or endpoint that all pods share.
 *
 * @example
 * const limits = createUserLimits({ store, levels: [{ per: 'user', limit: 20, windowMs: '1m' }] })
 * const { allowed, retryAfterMs } = await limits.check({ user: 'ann' })
 */
export function createUserLimits(options: UserLimitsOptions): UserLimits {
  const charges = createUserCharges(validate('userLimits', options, readOptions))
  return {
    async check({ cost = 1, ...subject }) {
      if (!Number.isInteger(cost) || cost < 1) validate('cost', cost, integer({ min: 1 }))
      const request = charges.requestFor(subject, cost)
      if (request === undefined) return UNLIMITED
      const { refusedBy, tightest, remaining, resetUs, waitUs } = await charges.charge(request)
      return {
        allowed: refusedBy === 0,
        level: request.levels[tightest - 1]?.per,
        remaining,
        resetMs: resetUs / 1_000,
        retryAfterMs: waitUs / 1_000,
      }
    },
  }
}
