/** What a client would like but does not insist on (RFC 7240). */

/** Whether it would rather hear now that its request was taken, and later what came of it. */
export function prefersAsync(prefer: string | string[] | undefined): boolean {
  if (prefer === undefined) return false
  return String(prefer)
    .split(',')
    .some((each) => /^\s*respond-async\s*(;|$)/i.test(each))
}
