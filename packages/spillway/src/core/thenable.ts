/** A user's function may return a value, a promise or a foreign thenable. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (value instanceof Promise) return true
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

/** Foreign thenables are wrapped, because they may call back synchronously, twice, or throw. */
export function toPromise<T>(value: PromiseLike<T>): Promise<T> {
  return value instanceof Promise ? value : Promise.resolve(value)
}

/**
 * Ignores the rejection of a callback that should not have been async; otherwise it ends the
 * process.
 */
export function swallow(value: unknown): void {
  if (isThenable(value)) toPromise(value).catch(() => {})
}
