/** A byte is a character: what heads of HTTP are made of. */

/** What `toString('latin1')` calls in the end: the way there costs more than the copying. */
export function latin1(
  bytes: Buffer & { latin1Slice?: (from?: number, to?: number) => string },
  from = 0,
  to = bytes.length,
): string {
  return bytes.latin1Slice?.(from, to) ?? bytes.toString('latin1', from, to)
}

/**
 * The same text, as a string of its own. A part of another keeps all of that: whatever of a head outlives its
 * request has to be let go of the rest.
 */
export function owned(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
