/** Longest name of a user, tier or model, and longest text from a request that is used as a key in memory. */
export const LONGEST_NAME = 200

export function isShort(text: string): boolean {
  return text.length <= LONGEST_NAME
}

/** Most texts that one function remembers: they come from requests, so their number is limited. */
const MOST_REMEMBERED = 1_000

/**
 * A function of a text that remembers its results, because nearly all requests have the same few paths, names and
 * headers. `compute` must depend on nothing but the text.
 */
export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined || known.has(text)) return before as T
    const result = compute(text)
    if (!isShort(text)) return result
    if (known.size >= MOST_REMEMBERED) known.clear()
    known.set(text, result)
    return result
  }
}
