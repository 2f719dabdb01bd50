/** A strict parser of one structured item with parameters (RFC 9651, 4.2.3): an error instead of a guess. */

/** A token, as opposed to a string. */
export interface Token {
  readonly token: string
}

export type BareItem = number | string | boolean | Token

export interface StructuredItem {
  readonly value: BareItem
  readonly parameters: Readonly<Record<string, BareItem>>
}

const KEY = /^[a-z*][a-z0-9_.*-]*/
const FORMS: readonly (readonly [RegExp, (text: string) => BareItem])[] = [
  [/^-?\d{1,12}\.\d{1,3}(?![\d.])/, Number],
  [/^-?\d{1,15}(?![\d.])/, Number],
  [
    /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/,
    (text) => text.slice(1, -1).replace(/\\(.)/g, '$1'),
  ],
  [/^\?[01]/, (text) => text === '?1'],
  [/^[A-Za-z*][\w!#$%&'*+.^`|~:/-]*/, (token) => ({ token })],
]

export function parseItem(field: string): StructuredItem {
  let rest = field
  const take = (pattern: RegExp): string | undefined => {
    const found = pattern.exec(rest)?.[0]
    rest = rest.slice(found?.length ?? 0)
    return found
  }
  const bareItem = (): BareItem => {
    for (const [pattern, read] of FORMS) {
      const text = take(pattern)
      if (text !== undefined) return read(text)
    }
    throw new Error(`no value at "${rest}" in "${field}"`)
  }
  const value = bareItem()
  const parameters: Record<string, BareItem> = Object.create(null)
  while (take(/^; */) !== undefined) {
    const key = take(KEY)
    if (key === undefined) throw new Error(`no key at "${rest}" in "${field}"`)
    // The RFC lets the last one win, which loses the first.
    if (key in parameters) throw new Error(`the key "${key}" appears twice in "${field}"`)
    parameters[key] = take(/^=/) === undefined ? true : bareItem()
  }
  if (rest !== '') throw new Error(`"${rest}" is left of "${field}"`)
  return { value, parameters: { ...parameters } }
}
