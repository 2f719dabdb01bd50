/** The attempts of a call, as `tryRun` and `attemptsOf` return them. */
import type { Outcome } from '../../core/outcome.js'

/** One attempt of a retried call. */
export interface Attempt {
  /** 1 for the first. */
  attempt: number
  /** The wait before it. */
  delayMs: number
  /** Milliseconds that it took. */
  durationMs: number
  /** How it ended. */
  outcome: Outcome
  /** The thrown error, if any. */
  error?: unknown
}

/**
 * Adds the attempts to an error. The error stays the object that the user's function threw and
 * looks the same: the property is not enumerable. An error that cannot take it (frozen, not an
 * object, already has such a property) is left alone; `tryRun` returns the attempts in any case.
 */
export function carryAttempts(error: unknown, attempts: readonly Attempt[]): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  if (Object.hasOwn(error, 'attempts') && attemptsOf(error).length === 0) return
  // `Reflect` returns false where `Object` throws.
  Reflect.defineProperty(error, 'attempts', {
    value: attempts,
    enumerable: false,
    configurable: true,
    writable: true,
  })
}

/** All attempts behind an error of `retry.run`; empty for any other error. */
export function attemptsOf(error: unknown): readonly Attempt[] {
  if (typeof error !== 'object' || error === null) return []
  const own = Object.getOwnPropertyDescriptor(error, 'attempts')
  return own !== undefined && !own.enumerable && Array.isArray(own.value) ? own.value : []
}
