/** The header `Prefer` (RFC 7240). */

/** Whether the client prefers 202 with the address of a job. */
export function prefersAsync(prefer: string | string[] | undefined): boolean {
  if (prefer === undefined) return false
  return String(prefer)
    .split(',')
    .some((each) => /^\s*respond-async\s*(;|$)/i.test(each))
}
