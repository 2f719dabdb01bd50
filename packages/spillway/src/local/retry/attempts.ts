/** The attempts of a call, and which of their results were final. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Outcome } from '../../core/outcome.js'

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

/**
 * Results that retries within one attempt have given up on. Two nested retries of three attempts
 * each would make nine, so the outer one does not repeat what the inner one has given up on.
 *
 * An error object does not say where it was thrown: unrelated calls may share a constant error. So
 * each attempt runs in an async context of its own, and an inner retry adds its final results to
 * the context that it runs in.
 */
export class AttemptScope {
  readonly #final = new Set<unknown>()

  /** Runs the function of an attempt in this scope. */
  run<A, T>(fn: (context: A) => T, context: A): T {
    return scopes.run(this, fn, context)
  }

  add(result: unknown): void {
    this.#final.add(result)
  }

  /** Whether a retry within this attempt has given up on this error or response. */
  has(result: unknown): boolean {
    let each = result
    while (each !== undefined) {
      if (this.#final.has(each)) return true
      each = typeof each === 'object' && each !== null ? originals.get(each) : undefined
    }
    return false
  }
}

const scopes = new AsyncLocalStorage<AttemptScope>()
const originals = new WeakMap<object, object>()

/** Notes that a retry within another retry's attempt has given up on this error or response. */
export function noteConclusion(result: unknown): void {
  scopes.getStore()?.add(result)
}

/** Copies the note from a response to the one that replaces it. */
export function carryConclusion(original: object, copy: object): void {
  originals.set(copy, original)
}

/** All attempts behind an error of `retry.run`; empty for any other error. */
export function attemptsOf(error: unknown): readonly Attempt[] {
  if (typeof error !== 'object' || error === null) return []
  const own = Object.getOwnPropertyDescriptor(error, 'attempts')
  return own !== undefined && !own.enumerable && Array.isArray(own.value) ? own.value : []
}
