/**
 * Writes JSON texts with the same meaning in the same way: without spaces, keys sorted, strings without unneeded escapes.
 * Numbers stay as they are written, because parsing would make different large numbers equal. A text is refused if a
 * key occurs twice, because vendors differ in which one they read.
 */

/** Deeper texts are refused: reading them would need too much of the stack. */
const MAX_DEPTH = 100

class Refused extends Error {}

/** Undefined if the text is refused. `isIgnored`: top-level fields to leave out. */
export function canonicalJson(
  text: string,
  isIgnored: (field: string) => boolean,
): string | undefined {
  try {
    return new CanonicalReader(text, isIgnored).read()
  } catch (error) {
    if (error instanceof Refused || error instanceof SyntaxError) return undefined
    throw error
  }
}

class CanonicalReader {
  readonly #text: string
  readonly #isIgnored: (field: string) => boolean
  #at = 0

  constructor(text: string, isIgnored: (field: string) => boolean) {
    this.#text = text
    this.#isIgnored = isIgnored
  }

  read(): string {
    const value = this.#value(0)
    if (this.#peek() !== undefined) throw new Refused()
    return value
  }

  #value(depth: number): string {
    if (depth > MAX_DEPTH) throw new Refused()
    const first = this.#peek()
    if (first === '{') return this.#object(depth)
    if (first === '[') return this.#array(depth)
    return first === '"' ? JSON.stringify(this.#string()) : this.#literal()
  }

  #object(depth: number): string {
    const fields = new Map<string, string>()
    this.#take('{')
    while (this.#peek() !== '}') {
      if (fields.size > 0) this.#take(',')
      if (this.#peek() !== '"') throw new Refused()
      const name = this.#string()
      if (fields.has(name)) throw new Refused()
      this.#take(':')
      fields.set(name, this.#value(depth + 1))
    }
    this.#take('}')
    const names = [...fields.keys()].filter((name) => depth > 0 || !this.#isIgnored(name))
    return `{${names
      .sort()
      .map((name) => `${JSON.stringify(name)}:${fields.get(name)}`)
      .join(',')}}`
  }

  #array(depth: number): string {
    const items: string[] = []
    this.#take('[')
    while (this.#peek() !== ']') {
      if (items.length > 0) this.#take(',')
      items.push(this.#value(depth + 1))
    }
    this.#take(']')
    return `[${items.join(',')}]`
  }

  /** The string that begins here, without its escapes. */
  #string(): string {
    const start = this.#at
    let end = this.#text.indexOf('"', start + 1)
    while (end !== -1 && isEscaped(this.#text, end)) end = this.#text.indexOf('"', end + 1)
    if (end === -1) throw new Refused()
    this.#at = end + 1
    return JSON.parse(this.#text.slice(start, this.#at)) as string
  }

  /** A number, true, false or null. */
  #literal(): string {
    LITERAL.lastIndex = this.#at
    const [literal] = LITERAL.exec(this.#text) ?? []
    if (literal === undefined) throw new Refused()
    this.#at += literal.length
    return literal
  }

  /** The next character that is not a space. */
  #peek(): string | undefined {
    while (SPACES.has(this.#text[this.#at] as string)) this.#at++
    return this.#text[this.#at]
  }

  #take(expected: string): void {
    if (this.#peek() !== expected) throw new Refused()
    this.#at++
  }
}

const SPACES: ReadonlySet<string> = new Set([' ', '\n', '\r', '\t'])
const LITERAL = /-?\d[\d.eE+-]*|true|false|null/y

/** Whether an odd number of backslashes precedes it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (text[before] === '\\') before--
  return (at - before) % 2 === 0
}
