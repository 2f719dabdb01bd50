/**
 * Parses YAML into plain values with the position of each. Resolves aliases and merge keys; names are always strings.
 */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import type { ConfigProblem } from '../config-error.js'
import type { YamlScalar } from './yaml-scalar.js'
import { syntaxMistakes } from './yaml-syntax-errors.js'

/** Offsets into the text. */
export interface Place {
  readonly key: number | undefined
  readonly value: number
}

export interface WrittenDocument {
  readonly value: unknown
  /** By path, such as `.vendors.openai.limits[0]`; the path of the root is empty. */
  readonly places: ReadonlyMap<string, Place>
  readonly scalars: readonly YamlScalar[]
  /** Invalid YAML: no further checks run. */
  readonly syntax: readonly ConfigProblem[]
  readonly mistakes: readonly ConfigProblem[]
  /** Some values could not be read, so the checks would report consequences of that. */
  readonly broken: boolean
  readonly lines: LineCounter
}

/** `text` is without a byte order mark. */
export function readDocument(text: string): WrittenDocument {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    resolveKnownTags: false,
    // Found below, where the path is known.
    uniqueKeys: false,
  })
  const reader = new Reader(document, lines)
  const value = reader.read(document.contents, '', undefined, [])
  return {
    value,
    places: reader.places,
    scalars: reader.scalars,
    syntax: syntaxMistakes([...document.errors, ...document.warnings], reader.scalars, text),
    mistakes: reader.mistakes,
    broken: reader.broken,
    lines,
  }
}

/** More than real files have. A few aliases of aliases can expand to billions of values. */
const MOST_VALUES = 20_000
const DEEPEST = 50
/** A mistake in an anchor is repeated by each alias. */
const MOST_MISTAKES = 100

interface Entry {
  name: string
  key: Scalar
  value: Node | null
}

class Reader {
  readonly places = new Map<string, Place>()
  readonly scalars: YamlScalar[] = []
  readonly mistakes: ConfigProblem[] = []
  broken = false
  readonly #document: Document.Parsed
  readonly #lines: LineCounter
  readonly #resolved = new Map<Alias, Node | undefined>()
  #values = 0
  #isFull = false

  constructor(document: Document.Parsed, lines: LineCounter) {
    this.#document = document
    this.#lines = lines
  }

  read(node: Node | null, path: string, key: Scalar | undefined, around: readonly Node[]): unknown {
    if (this.#isFull) return undefined
    this.#place(node, path, key)
    const found = this.#follow(node, path)
    if (found === undefined || !this.#isWithinLimits(found, path, around)) return undefined
    if (isScalar(found)) return this.#readScalar(found, path)
    const inside = [...around, found]
    if (isSeq(found)) {
      return found.items.map((item, index) =>
        this.read(item as Node, `${path}[${index}]`, undefined, inside),
      )
    }
    const value: Record<string, unknown> = {}
    for (const entry of isMap(found) ? this.#entries(found, path, inside) : []) {
      value[entry.name] = this.read(entry.value, `${path}.${entry.name}`, entry.key, inside)
    }
    return value
  }

  #readScalar(scalar: Scalar, path: string): unknown {
    if (scalar.value !== null) this.#note(scalar, path, 'value')
    // An unquoted secret that begins with & or ! is read as an anchor or a tag.
    else if (scalar.anchor !== undefined) this.#noteText(scalar.anchor, path)
    if (scalar.tag !== undefined) this.#noteText(scalar.tag, path)
    return scalar.value
  }

  #place(node: Node | null, path: string, key: Scalar | undefined): void {
    const keyAt = key && startOf(key)
    const own = node === null ? 0 : startOf(node)
    this.places.set(path, { key: keyAt, value: isEmpty(node) ? (keyAt ?? own) : own })
  }

  #note(scalar: Scalar, path: string, kind: YamlScalar['kind']): void {
    const [start, end] = scalar.range ?? [0, 0]
    this.scalars.push({ path, kind, text: String(scalar.value), start, end })
  }

  /** Values that are not read may still be quoted in an error. */
  #noteUnread(value: Node | null, path: string): void {
    if (value === null) return
    visit(value, { Scalar: (_, scalar) => void this.#readScalar(scalar, path) })
  }

  /** A text without a known position. */
  #noteText(text: string, path: string): void {
    this.scalars.push({ path, kind: 'value', text, start: 0, end: 0 })
  }

  /** Resolves an alias. An empty document is an empty map. */
  #follow(node: Node | null, path: string): Node | undefined {
    if (node === null || node === undefined) {
      return path === '' ? this.#document.createNode({}) : this.#document.createNode(null)
    }
    if (!isAlias(node)) return node
    const found = this.#resolve(node)
    if (found === undefined) {
      this.#noteText(node.source, path)
      this.#break(path, 'is an alias (*) without its anchor (&) before it')
    }
    return found
  }

  /** Cached, because each lookup walks through the whole document. */
  #resolve(alias: Alias): Node | undefined {
    if (!this.#resolved.has(alias)) this.#resolved.set(alias, alias.resolve(this.#document))
    return this.#resolved.get(alias)
  }

  #isWithinLimits(node: Node, path: string, around: readonly Node[]): boolean {
    this.#values++
    if (around.includes(node)) this.#break(path, 'is an alias of something that it is a part of')
    else if (around.length > DEEPEST) this.#break(path, 'is nested too deeply')
    else if (this.#values >= MOST_VALUES && !this.#isFull) {
      this.#isFull = true
      this.#break(
        path,
        `is one value too many, of ${MOST_VALUES}: aliases repeat what they stand for`,
      )
    } else return this.#values < MOST_VALUES
    return false
  }

  /** The map's own keys, then merged keys that it does not have. */
  #entries(map: YAMLMap, path: string, inside: readonly Node[]): Entry[] {
    const own = new Map<string, Entry>()
    const merges: Node[] = []
    for (const pair of map.items as Pair<Scalar, Node | null>[]) {
      const { key, value } = pair
      if (!isScalar(key)) continue
      const name = String(key.value)
      if (name === '<<' && key.type === 'PLAIN') {
        merges.push(...this.#mergedBy(value, `${path}.<<`, key))
        continue
      }
      this.#note(key, `${path}.${name}`, isEmpty(value) ? 'lone-name' : 'name')
      const before = own.get(name)
      if (before !== undefined || name === '__proto__') {
        this.#noteUnread(value, `${path}.${name}`)
        if (before !== undefined) this.#complainOfTwo(`${path}.${name}`, before, key)
        else this.#refuseName(`${path}.${name}`, key)
      } else own.set(name, { name, key, value })
    }
    for (const merged of merges) {
      if (!isMap(merged) || !this.#isWithinLimits(merged, path, inside)) continue
      for (const entry of this.#entries(merged, path, [...inside, merged])) {
        if (!own.has(entry.name)) own.set(entry.name, entry)
      }
    }
    return [...own.values()]
  }

  #mergedBy(node: Node | null, path: string, key: Scalar): Node[] {
    this.#place(node, path, key)
    const found = this.#follow(node, path)
    if (found === undefined) return []
    const parts = isSeq(found)
      ? found.items.map((item) => this.#follow(item as Node, path))
      : [found]
    const maps = parts.filter((part) => isMap(part))
    if (maps.length < parts.length) this.#break(path, 'must be a map, or a list of maps, to merge')
    return maps
  }

  #complainOfTwo(path: string, before: Entry, key: Scalar): void {
    const { line } = this.#lines.linePos(startOf(before.key))
    const message = `is written twice, first in line ${line}: keep one of them`
    this.mistakes.push({ path, message, at: startOf(key) })
  }

  #refuseName(path: string, key: Scalar): void {
    this.broken = true
    this.mistakes.push({ path, message: 'is a reserved name; use another one', at: startOf(key) })
  }

  #break(path: string, message: string): void {
    this.broken = true
    this.#values++
    if (this.mistakes.length < MOST_MISTAKES) this.mistakes.push({ path, message })
  }
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}

/** Nothing is written there, not even an empty string. */
function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null && node.source === '')
}
