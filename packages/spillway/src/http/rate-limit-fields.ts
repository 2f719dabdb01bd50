/**
 * `RateLimit-Policy` and `RateLimit` of the IETF draft (draft-ietf-httpapi-ratelimit-headers, from
 * its eighth version on): structured fields with the units left and the seconds until there are
 * more.
 */

/** A level of limits, as clients see it. */
export interface Policy {
  /** Name of the level. */
  readonly name: string
  /** Units per window. */
  readonly limit: number
  /** Length of the window in microseconds. */
  readonly windowUs: number
  /** How the level counts. Default: `token-bucket`. */
  readonly algorithm?: 'token-bucket' | 'sliding-window'
}

/** The units left on the level that has least. */
export interface Left {
  /** Units that are left. */
  readonly remaining: number
  /** Time until it is full again. */
  readonly resetUs: number
}

const SECOND_US = 1_000_000

/** One limit as an item of the header `RateLimit-Policy`. */
export function policyItem({ name, limit, windowUs }: Policy): string {
  return `"${name}";q=${limit};w=${Math.max(1, Math.ceil(windowUs / SECOND_US))}`
}

/** What is left of one limit, as an item of the header `RateLimit`. */
export function standingItem(policy: Policy, left: Left): string {
  return item(policy.name, left.remaining, moreInUs(policy, left))
}

/** For a refused client: the wait after which there is enough again. */
export function exhaustedItem(
  { name }: Pick<Policy, 'name'>,
  { remaining, waitUs }: { readonly remaining: number; readonly waitUs: number },
): string {
  return item(name, remaining, waitUs)
}

function item(name: string, remaining: number, moreUs: number): string {
  return `"${name}";r=${Math.max(0, Math.floor(remaining))};t=${Math.ceil(moreUs / SECOND_US)}`
}

/** A bucket refills unit by unit. For a window, only the time is known when all units are back. */
function moreInUs({ limit, windowUs, algorithm }: Policy, { resetUs }: Left): number {
  if (resetUs <= 0) return 0
  if (algorithm === 'sliding-window') return resetUs
  const everyUs = windowUs / limit
  // Intervals below one second are reported as one second.
  if (everyUs <= SECOND_US) return Math.min(resetUs, SECOND_US)
  return resetUs % everyUs || everyUs
}
