/**
 * Errors and responses that retries within one attempt have given up on. Two nested retries of three
 * attempts each would make nine, so the outer one does not repeat what the inner one has given up on.
 *
 * An error object does not say where it was thrown: unrelated calls may share a constant error. So
 * each attempt runs in an async context of its own, and an inner retry adds its final results to
 * the scope that it runs in.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export type AttemptScope = Set<unknown>

const scopes = new AsyncLocalStorage<AttemptScope>()
/**
 * Objects that were given up on, and copies of them, each with the object that is in a scope. Ordinary responses
 * have no entry: V8 would keep the original until a full garbage collection.
 */
const originals = new WeakMap<object, object>()

/** Calls the function of an attempt in its scope. */
export function runInScope<A extends unknown[], T>(
  scope: AttemptScope,
  fn: (...args: A) => T,
  ...args: A
): T {
  return scopes.run(scope, fn, ...args)
}

/** A retry has given up on this error or value. */
export function noteGivenUp(result: unknown): void {
  const scope = scopes.getStore()
  if (scope === undefined) return
  scope.add(result)
  if (isObject(result)) originals.set(result, result)
}

/** If the original was given up on, so was the response that replaces it. */
export function carryGivenUp(original: object, copy: object): void {
  const inScope = originals.get(original)
  if (inScope !== undefined) originals.set(copy, inScope)
}

/** Whether a retry within the attempt of this scope has given up on the attempt's error or value. */
export function wasGivenUp(scope: AttemptScope | undefined, result: unknown): boolean {
  if (scope === undefined) return false
  return scope.has(result) || (isObject(result) && scope.has(originals.get(result)))
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
