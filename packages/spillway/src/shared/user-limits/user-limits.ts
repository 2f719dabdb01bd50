/**
 * Fairness between users: how much one user, address, tier or endpoint may ask for, counted for the
 * whole fleet. All levels that apply to a request are checked together: one that refuses costs
 * nothing on the others. For a vendor's contract use the rate limiter: a token bucket lets a burst
 * and then a steady rate through, which is more than its limit in the first window.
 */
import { SpillwayError } from '../../core/errors.js'
import { integer, object, optional, text, validate } from '../../core/options.js'
import type { LevelCharge, LevelReply, Store } from '../../store/port.js'
import { readStore } from '../store-option.js'
import { Batcher } from './batcher.js'
import { createLevels, type Level, readLevels, type Subject, type UserLevel } from './levels.js'

export interface UserLimitsOptions {
  store: Store
  /** Told apart from other user limits in the same store by this. Default: no name. */
  name?: string
  levels: readonly UserLevel[]
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
})

export function createUserLimits(options: UserLimitsOptions): UserLimits {
  const { store, name, levels } = validate('userLimits', options, readOptions)
  const all = createLevels(levels, name)
  const batcher = new Batcher<{ levels: LevelCharge[]; cost: number }, LevelReply>((requests) =>
    store.levels.check(requests),
  )
  return {
    async check({ cost = 1, ...subject }) {
      if (!Number.isInteger(cost) || cost < 1) validate('cost', cost, integer({ min: 1 }))
      const applying: Level[] = []
      const charges: LevelCharge[] = []
      for (const level of all) {
        const charge = level.chargeFor(subject)
        if (charge === undefined) continue
        applying.push(level)
        charges.push(charge)
      }
      if (charges.length === 0) return UNLIMITED
      const reply = await batcher.ask({ levels: charges, cost }).catch((cause) => {
        throw storeError(cause)
      })
      return {
        allowed: reply.refusedBy === 0,
        level: applying[reply.tightest - 1]?.per,
        remaining: reply.remaining,
        resetMs: reply.resetUs / 1_000,
        retryAfterMs: reply.waitUs / 1_000,
      }
    },
  }
}

function storeError(cause: unknown): SpillwayError {
  return new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage: 'user-limit',
    scope: 'shared',
    explain: () => 'user limits: the store did not answer',
    cause,
  })
}
