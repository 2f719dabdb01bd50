/** Longest name of a user, tier or model, and longest text from a request that is used as a key in memory. */
export const LONGEST_NAME = 200

export function isShort(text: string): boolean {
  return text.length <= LONGEST_NAME
}
