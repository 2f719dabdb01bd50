/** A byte is a character: what heads of HTTP are made of. */

/** What `toString('latin1')` calls in the end: the way there costs more than the copying. */
export function latin1(
  bytes: Buffer & { latin1Slice?: (from?: number, to?: number) => string },
  from = 0,
  to = bytes.length,
): string {
  return bytes.latin1Slice?.(from, to) ?? bytes.toString('latin1', from, to)
}
