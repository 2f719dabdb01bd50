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

/**
 * Results that retries inside of one attempt have given up on. Two nested retries of three attempts
 * each would make nine, so the outer one does not retry what the inner one has given up on.
 *
 * An error object says nothing about where it was thrown: a constant error may be shared by calls that
 * have nothing to do with each other. So each attempt runs in an async context of its own, and an inner
 * retry adds its final results to the context that it runs in.
 */
export class AttemptScope {
  readonly #final = new Set<unknown>()

  /** Runs an attempt's function in this scope. */
  run<T>(fn: () => T): T {
    return scopes.run(this, fn)
  }

  add(result: unknown): void {
    this.#final.add(result)
  }

  /** Whether a retry inside of this attempt has given up on this error or answer. */
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

/** A retry that runs inside of another one's attempt has given up on this error or answer. */
export function noteConclusion(result: unknown): void {
  scopes.getStore()?.add(result)
}

/** An answer takes the place of another; what was noted of the original holds for it, too. */
export function carryConclusion(original: object, copy: object): void {
  originals.set(copy, original)
}

/** Every attempt behind an error that came out of `retry.run`; none for any other error. */
export function attemptsOf(error: unknown): readonly Attempt[] {
  if (typeof error !== 'object' || error === null) return []
  const own = Object.getOwnPropertyDescriptor(error, 'attempts')
  return own !== undefined && !own.enumerable && Array.isArray(own.value) ? own.value : []
}
