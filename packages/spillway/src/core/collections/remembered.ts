/** Results of functions of one text, for texts that callers choose: paths, names, headers. */
import { isLongName } from '../long-name.js'

/** Callers choose the texts, so their number is limited, too. */
const MOST_REMEMBERED = 1_000

/**
 * Caches the results of a function of a string, because nearly all requests have the same few values. `compute` must
 * be pure. Results of long strings are not cached.
 */
export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined || known.has(text)) return before as T
    const result = compute(text)
    if (isLongName(text)) return result
    if (known.size >= MOST_REMEMBERED) known.clear()
    known.set(text, result)
    return result
  }
}
