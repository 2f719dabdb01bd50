/** Users' functions may return a value, a promise, or somebody else's idea of a promise. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (value instanceof Promise) return true
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

/** Foreign thenables are adopted: theirs may call back at once, twice, or throw. */
export function toPromise<T>(value: PromiseLike<T>): Promise<T> {
  return value instanceof Promise ? value : Promise.resolve(value)
}

/** A callback that should not have been async was; its rejection must not end the process. */
export function swallow(value: unknown): void {
  if (isThenable(value)) toPromise(value).catch(() => {})
}
