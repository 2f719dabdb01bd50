/** Names with `*` wildcards, such as `gpt-4o-mini*`. Each part is searched once, so a name costs linear time. */
export class NamePattern {
  readonly text: string
  readonly #first: string
  readonly #last: string
  /** Between the wildcards, in order. */
  readonly #middle: readonly string[]
  readonly #hasWildcard: boolean
  readonly #minLength: number

  constructor(text: string) {
    this.text = text
    const parts = text.split('*')
    this.#first = parts[0] as string
    this.#last = parts[parts.length - 1] as string
    this.#hasWildcard = parts.length > 1
    this.#middle = parts.slice(1, -1).filter((part) => part !== '')
    this.#minLength = text.length - (parts.length - 1)
  }

  matches(name: string): boolean {
    if (!this.#hasWildcard) return name === this.text
    if (name.length < this.#minLength) return false
    if (!name.startsWith(this.#first) || !name.endsWith(this.#last)) return false
    const end = name.length - this.#last.length
    let at = this.#first.length
    for (const part of this.#middle) {
      const found = name.indexOf(part, at)
      if (found === -1 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }

  /** Matches every name that the other one matches. A wildcard of the other one fits only one of this pattern. */
  covers(other: NamePattern): boolean {
    return this.matches(other.text)
  }
}
