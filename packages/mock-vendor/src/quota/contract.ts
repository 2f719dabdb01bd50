/** The contract of a mock vendor: its limits, for each API key and model separately, and their state. */
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

export type Limit = ReturnType<typeof readLimit>
export type LimitUnit = Limit['unit']
export type Cost = Readonly<Record<LimitUnit, number>>

/** The state of one limit. */
export interface LimitState {
  readonly unit: LimitUnit
  readonly limit: number
  readonly windowMs: number
  readonly used: number
  /** Time until everything is free again. */
  readonly resetMs: number
}

/** Why a request is refused. */
export interface Excess extends LimitState {
  readonly requested: number
  /** Time until the request would fit. A request that never fits waits for a window. */
  readonly waitMs: number
}

/** For each unit, the limit with the smallest remainder, because there is one header per unit. */
export function tightest(states: readonly LimitState[]): LimitState[] {
  const byUnit = new Map<string, LimitState>()
  for (const state of states) {
    const other = byUnit.get(state.unit)
    if (other === undefined || remaining(state) < remaining(other)) {
      byUnit.set(state.unit, state)
    }
  }
  return [...byUnit.values()]
}

export function remaining({ limit, used }: LimitState): number {
  return Math.max(0, limit - used)
}
