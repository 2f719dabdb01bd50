/**
 * The same text, as a string of its own. A part of another keeps all of that: whatever of a head outlives its
 * request has to be let go of the rest.
 */
export function owned(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
