/** The limits of a mock vendor, counted for each API key and model separately. */
import { type Duration, duration, integer, object, oneOf, optional } from 'spillway/options'

/** A limit of the mock vendor, counted for each API key and model separately. */
export interface MockLimit {
  /** Units per window. Range: integers from 1. */
  limit: number
  /** Length of the window. Range: from 1 ms. */
  windowMs: Duration
  /**
   * The counted unit. `tokens` are those of prompt and response together. `inputTokens` and `outputTokens` are
   * counted, but only Anthropic has headers for them. Default: `requests`.
   */
  unit?: 'requests' | 'tokens' | 'inputTokens' | 'outputTokens' | undefined
}

export const readLimit = object({
  limit: integer({ min: 1 }),
  windowMs: duration({ min: 1 }),
  unit: optional(oneOf('requests', 'tokens', 'inputTokens', 'outputTokens'), 'requests'),
})

type Limit = ReturnType<typeof readLimit>
export type LimitUnit = Limit['unit']
export type Cost = Readonly<Record<LimitUnit, number>>

/** The state of one limit. */
export interface Standing {
  readonly unit: LimitUnit
  readonly limit: number
  readonly windowMs: number
  readonly used: number
  /** Time until everything is free again. */
  readonly resetMs: number
}

/** Why a request is refused. */
export interface Excess extends Standing {
  readonly requested: number
  /** Time until the request would fit. A request that never fits waits for a window. */
  readonly waitMs: number
}

export class Limits {
  readonly #limits: readonly Limit[]
  readonly #lanes = new Map<string, Window[]>()

  constructor(limits: readonly Limit[]) {
    this.#limits = limits
  }

  /**
   * Charges every limit. If one is exceeded, charges none and returns the one with the longest
   * wait.
   */
  take(lane: string, nowMs: number, cost: Cost): Excess | undefined {
    const windows = this.#windowsOf(lane)
    let worst: Excess | undefined
    for (const window of windows) {
      const requested = cost[window.limit.unit]
      const waitMs = window.waitMs(nowMs, requested)
      if (waitMs <= (worst?.waitMs ?? 0)) continue
      worst = { ...window.standing(nowMs), requested, waitMs }
    }
    if (worst !== undefined) return worst
    for (const window of windows) window.charge(nowMs, cost[window.limit.unit])
    return undefined
  }

  standings(lane: string, nowMs: number): Standing[] {
    return this.#windowsOf(lane).map((window) => window.standing(nowMs))
  }

  #windowsOf(lane: string): Window[] {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const windows = this.#limits.map((limit) => new Window(limit))
    this.#lanes.set(lane, windows)
    return windows
  }
}

/** Exact: every charge counts until it is as old as the window. */
class Window {
  #charges: { atMs: number; amount: number }[] = []
  #used = 0

  constructor(readonly limit: Limit) {}

  waitMs(nowMs: number, amount: number): number {
    this.#forget(nowMs)
    let tooMany = this.#used + amount - this.limit.limit
    if (tooMany <= 0) return 0
    for (const charge of this.#charges) {
      tooMany -= charge.amount
      if (tooMany <= 0) return charge.atMs + this.limit.windowMs - nowMs
    }
    return this.limit.windowMs
  }

  charge(atMs: number, amount: number): void {
    this.#charges.push({ atMs, amount })
    this.#used += amount
  }

  standing(nowMs: number): Standing {
    this.#forget(nowMs)
    const last = this.#charges.at(-1)
    const resetMs = last === undefined ? 0 : last.atMs + this.limit.windowMs - nowMs
    return { ...this.limit, used: this.#used, resetMs }
  }

  #forget(nowMs: number): void {
    const gone = (charge: { atMs: number }) => charge.atMs + this.limit.windowMs <= nowMs
    let old = 0
    for (let charge = this.#charges[old]; charge && gone(charge); charge = this.#charges[++old]) {
      this.#used -= charge.amount
    }
    if (old > 0) this.#charges.splice(0, old)
  }
}

/** For each unit, the limit that has least left, because there is one header per unit. */
export function tightest(standings: readonly Standing[]): Standing[] {
  const byUnit = new Map<string, Standing>()
  for (const standing of standings) {
    const other = byUnit.get(standing.unit)
    if (other === undefined || remaining(standing) < remaining(other)) {
      byUnit.set(standing.unit, standing)
    }
  }
  return [...byUnit.values()]
}

export function remaining({ limit, used }: Standing): number {
  return Math.max(0, limit - used)
}
