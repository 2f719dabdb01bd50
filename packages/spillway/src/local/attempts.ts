/** One try of a call, as told afterwards. */
import type { Outcome } from '../core/outcome.js'

export interface Attempt {
  /** 1 for the first. */
  attempt: number
  /** The wait before it. */
  delayMs: number
  durationMs: number
  outcome: Outcome
  /** What it threw, if it threw. */
  error?: unknown
}

/**
 * Lets an error tell of all attempts that led to it. The error stays the object the user's function
 * threw, and looks the same: the property is not enumerable. One that cannot take it (frozen, not
 * an object, with such a property of its own) goes without; `tryRun` tells in any case.
 */
export function carryAttempts(error: unknown, attempts: readonly Attempt[]): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  if (Object.hasOwn(error, 'attempts') && attemptsOf(error).length === 0) return
  // Reflect says no where Object throws: an error may forbid it in ways of its own.
  Reflect.defineProperty(error, 'attempts', {
    value: attempts,
    enumerable: false,
    configurable: true,
    writable: true,
  })
}

/** Every attempt behind an error that came out of `retry.run`; none for any other error. */
export function attemptsOf(error: unknown): readonly Attempt[] {
  if (typeof error !== 'object' || error === null) return []
  const own = Object.getOwnPropertyDescriptor(error, 'attempts')
  return own !== undefined && !own.enumerable && Array.isArray(own.value) ? own.value : []
}
