/** The name before the first release. `spillway/local` exports another function of that name. */

/** @deprecated Renamed to `createSharedRateLimiter`. Always throws. */
export function createRateLimiter(..._options: never[]): never {
  throw new TypeError(
    "createRateLimiter of 'spillway/shared' was renamed: use createSharedRateLimiter",
  )
}
