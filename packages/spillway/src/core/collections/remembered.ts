/** Results of functions of one text, for texts that callers choose: paths, names, headers. */
import { isLongName } from '../long-name.js'

/** Callers choose the texts, so their number is limited, too. */
const MOST_REMEMBERED = 1_000

/**
 * A function of a text that remembers its results, because nearly all requests have the same few texts. `compute` must
 * depend on nothing but the text. Results of long texts are not kept.
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
