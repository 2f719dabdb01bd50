/**
 * Creates a value that fits a JSON schema, for structured output and tool arguments. Supports the keywords that SDKs
 * generate: types, required and optional properties, enum, const, anyOf, allOf, $ref and bounds.
 */
export type Schema = Readonly<Record<string, unknown>>

/** Recursive schemas end at this depth, where optional properties and items are left out. */
const MAX_DEPTH = 8

export function exampleOf(schema: unknown): unknown {
  return example(asSchema(schema), { root: asSchema(schema), depth: 0 })
}

interface Place {
  readonly root: Schema
  readonly depth: number
}

function example(schema: Schema, place: Place): unknown {
  const resolved = resolve(schema, place)
  if ('const' in resolved) return resolved.const
  for (const name of ['enum', 'examples']) {
    const values = resolved[name]
    if (Array.isArray(values) && values.length > 0) return values[0]
  }
  if ('default' in resolved) return resolved.default
  const choices = resolved.anyOf ?? resolved.oneOf
  if (Array.isArray(choices) && choices.length > 0) {
    const notNull = choices.find((choice) => asSchema(choice).type !== 'null') ?? choices[0]
    const { anyOf: _, oneOf: __, ...rest } = resolved
    return example({ ...rest, ...asSchema(notNull) }, deeper(place))
  }
  return EXAMPLES[typeOf(resolved)]?.(resolved, deeper(place)) ?? null
}

const EXAMPLES: Readonly<Record<string, (schema: Schema, place: Place) => unknown>> = {
  object(schema, place) {
    const required = Array.isArray(schema.required) ? schema.required : []
    const properties = Object.entries(asSchema(schema.properties))
    const wanted = properties.filter(([name]) => place.depth < MAX_DEPTH || required.includes(name))
    return Object.fromEntries(
      wanted.map(([name, inner]) => [name, example(asSchema(inner), place)]),
    )
  },
  array(schema, place) {
    const { prefixItems, items, minItems, maxItems } = schema
    if (Array.isArray(prefixItems)) return prefixItems.map((item) => example(asSchema(item), place))
    const least = numberOr(minItems, place.depth < MAX_DEPTH ? 1 : 0)
    const length = Math.min(least, numberOr(maxItems, Number.POSITIVE_INFINITY))
    return Array.from({ length }, () => example(asSchema(items), place))
  },
  string(schema) {
    const text = FORMATS[String(schema.format)] ?? 'mock'
    const longEnough = text.padEnd(numberOr(schema.minLength, 0), 'k')
    return longEnough.slice(0, numberOr(schema.maxLength, longEnough.length))
  },
  integer: (schema) => numberOf(schema, true),
  number: (schema) => numberOf(schema, false),
  boolean: () => true,
  null: () => null,
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2024-01-01T00:00:00Z',
  date: '2024-01-01',
  time: '00:00:00Z',
  duration: 'PT1S',
  email: 'mock@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '00000000-0000-4000-8000-000000000000',
  uri: 'https://example.com/',
}

/** Follows `$ref` within the schema and merges `allOf`. */
function resolve(schema: Schema, place: Place): Schema {
  if (place.depth > 2 * MAX_DEPTH) return {}
  if (typeof schema.$ref === 'string') {
    const { $ref, ...rest } = schema
    return resolve({ ...refer(place.root, $ref), ...rest }, deeper(place))
  }
  if (!Array.isArray(schema.allOf)) return schema
  const parts = schema.allOf.map((part) => resolve(asSchema(part), deeper(place)))
  const properties = Object.assign({}, schema.properties, ...parts.map((part) => part.properties))
  return Object.assign({}, schema, ...parts, { properties, allOf: undefined })
}

function refer(root: Schema, ref: string): Schema {
  const steps = ref.replace(/^#\/?/, '').split('/')
  return steps.reduce((inner, step) => (step === '' ? inner : asSchema(inner[step])), root)
}

function typeOf(schema: Schema): string {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  const type = types.find((name) => name !== 'null') ?? types[0]
  if (typeof type === 'string') return type
  if ('properties' in schema) return 'object'
  return 'items' in schema ? 'array' : 'string'
}

/** The first of a few candidates that fits the bounds and the step. */
function numberOf(schema: Schema, isInteger: boolean): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema
  const above = numberOr(exclusiveMinimum, Number.NEGATIVE_INFINITY)
  const below = numberOr(exclusiveMaximum, Number.POSITIVE_INFINITY)
  const least = Math.max(numberOr(minimum, Number.NEGATIVE_INFINITY), above)
  const most = Math.min(numberOr(maximum, Number.POSITIVE_INFINITY), below)
  const step = numberOr(multipleOf, isInteger ? 1 : 0)
  const multiples =
    step > 0 ? [Math.ceil(least / step) * step, (Math.floor(least / step) + 1) * step] : []
  const candidates = [
    1,
    step,
    0,
    least,
    most,
    least + 1,
    most - 1,
    (least + most) / 2,
    ...multiples,
  ]
  const fits = (value: number) =>
    value >= least &&
    value <= most &&
    value > above &&
    value < below &&
    Number.isFinite(value) &&
    (step === 0 || Number.isInteger(value / step))
  return candidates.find(fits) ?? 1
}

function numberOr(value: unknown, other: number): number {
  return typeof value === 'number' ? value : other
}

function deeper({ root, depth }: Place): Place {
  return { root, depth: depth + 1 }
}

function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {}
}
