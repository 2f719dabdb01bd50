/**
 * JSON Schema of a check, for editors that complete and validate configuration files. Each check
 * carries its own schema, so the two cannot diverge.
 */

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = { readonly [keyword: string]: unknown }

// biome-ignore lint/suspicious/noExplicitAny: a function is known by what it is, not by what it takes
type AnyCheck = (...args: any[]) => unknown

const schemas = new WeakMap<AnyCheck, () => JsonSchema | undefined>()
const optionals = new WeakSet<AnyCheck>()

/**
 * Attaches a schema to a check and returns the check. Undefined: a file cannot contain such a
 * value.
 */
export function described<C extends AnyCheck>(
  check: C,
  schema: JsonSchema | undefined | (() => JsonSchema | undefined),
): C {
  schemas.set(check, typeof schema === 'function' ? schema : () => schema)
  return check
}

/** Attaches the schema of another check, which is built when needed. */
export function describedAs<C extends AnyCheck>(check: C, other: AnyCheck): C {
  return described(check, () => schemaOf(other))
}

/** Marks a check as that of an optional field. */
export function markOptional<C extends AnyCheck>(check: C): C {
  optionals.add(check)
  return check
}

/** Undefined if a file cannot contain such a value. A check without a schema accepts anything. */
export function schemaOf(check: AnyCheck): JsonSchema | undefined {
  const known = schemas.get(check)
  return known === undefined ? {} : known()
}

/** A check whose schema has a description, for editors and for the reference of options. */
export function about<C extends AnyCheck>(description: string, check: C): C {
  const same = ((...args) => check(...args)) as C
  described(same, () => {
    const schema = schemaOf(check)
    return schema && { ...schema, description }
  })
  return optionals.has(check) ? markOptional(same) : same
}

/** A schema with the default value. Objects are left out, because their fields have their own defaults. */
export function withDefault(
  schema: JsonSchema | undefined,
  fallback: unknown,
): JsonSchema | undefined {
  const isPlain =
    typeof fallback === 'string' ||
    typeof fallback === 'boolean' ||
    Number.isFinite(fallback) ||
    Array.isArray(fallback)
  return schema && isPlain ? { ...schema, default: fallback } : schema
}

/** An object with these fields and no others. */
export function objectSchema(fields: Readonly<Record<string, AnyCheck>>): JsonSchema {
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  for (const [name, check] of Object.entries(fields)) {
    const schema = schemaOf(check)
    if (schema === undefined) continue
    properties[name] = schema
    if (!optionals.has(check)) required.push(name)
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}
