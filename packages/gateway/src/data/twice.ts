/**
 * Whether a JSON object says its model twice. We would take the last, and so do most; whoever takes the
 * first would be asked for a model that no route here has let through.
 */

const NAME = '"model"'
/** No program writes letters so, but for somebody who wants to hide them. */
const HIDDEN = '\\u006'

/** `json` is known to be an object. */
export function saysModelTwice(json: string): boolean {
  const first = json.indexOf(NAME)
  const isPossible = (first !== -1 && json.includes(NAME, first + 1)) || json.includes(HIDDEN)
  return isPossible && modelsIn(json) > 1
}

/** Counts the names of the object itself, not of those inside it. */
function modelsIn(json: string): number {
  let count = 0
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === '"') {
      const end = endOfString(json, at)
      if (depth === 1 && isName(json, end) && JSON.parse(json.slice(at, end)) === 'model') count++
      at = end - 1
    }
  }
  return count
}

/** Behind the quote that closes it. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  for (;;) {
    const quote = json.indexOf('"', at)
    let escapes = 0
    while (json[quote - 1 - escapes] === '\\') escapes++
    if (quote === -1 || escapes % 2 === 0) return quote === -1 ? json.length : quote + 1
    at = quote + 1
  }
}

const COLON = /\s*:/y

function isName(json: string, end: number): boolean {
  COLON.lastIndex = end
  return COLON.test(json)
}
