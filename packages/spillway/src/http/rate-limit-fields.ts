/**
 * `RateLimit-Policy` and `RateLimit`, as the IETF's draft has them (draft-ietf-httpapi-ratelimit-headers, from
 * its eighth version on): structured fields, with what is left and the seconds until there is more.
 */

/** A level of limits, as clients are told of it. */
export interface Policy {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
}

export interface Standing extends Policy {
  readonly remaining: number
  /** Until it has everything again. */
  readonly resetMs: number
}

export function policyItem({ name, limit, windowMs }: Policy): string {
  return `"${name}";q=${limit};w=${Math.max(1, Math.ceil(windowMs / 1_000))}`
}

export function standingItem(standing: Standing): string {
  const { name, remaining } = standing
  return `"${name}";r=${Math.max(0, Math.floor(remaining))};t=${Math.ceil(moreInMs(standing) / 1_000)}`
}

/** The same for somebody who was refused: there is enough again in so long. */
export function exhaustedItem(name: string, remaining: number, retryAfterMs: number): string {
  return `"${name}";r=${Math.max(0, Math.floor(remaining))};t=${Math.ceil(retryAfterMs / 1_000)}`
}

/** A bucket gets its units back one by one, until it is full. */
function moreInMs({ limit, windowMs, resetMs }: Standing): number {
  if (resetMs <= 0) return 0
  const everyMs = windowMs / limit
  return resetMs % everyMs || everyMs
}
