/** The names of options and the fixed values of the configuration's schema. Built for the first report only. */
import { gatewaySchema } from '../json-schema.js'

export interface SchemaIndex {
  /** Names of options, and values that the schema lists. */
  readonly words: ReadonlySet<string>
  /** The objects that have an option of this name, such as `vendors.NAME.queue`. Empty: the top level. */
  readonly places: ReadonlyMap<string, readonly string[]>
}

type Schema = Readonly<Record<string, unknown>>

let index: SchemaIndex | undefined

export function schemaIndex(): SchemaIndex {
  index ??= build()
  return index
}

function build(): SchemaIndex {
  const words = new Set<string>()
  const places = new Map<string, string[]>()
  const walk = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return
    const {
      properties = {},
      items,
      additionalProperties,
      enum: values = [],
      anyOf = [],
    } = schema as Schema
    for (const value of values as unknown[]) words.add(String(value))
    for (const [name, each] of Object.entries(properties as Schema)) {
      words.add(name)
      const known = places.get(name) ?? []
      if (!known.includes(path)) places.set(name, [...known, path])
      walk(each, path === '' ? name : `${path}.${name}`)
    }
    for (const each of anyOf as unknown[]) walk(each, path)
    walk(items, `${path}[]`)
    walk(additionalProperties, `${path}.NAME`)
  }
  walk(gatewaySchema(), '')
  return { words, places }
}
