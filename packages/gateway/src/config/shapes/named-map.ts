import { type Check, described, type JsonSchema, type OptionProblem } from 'spillway/options'
import type { ConfigProblem } from '../config-error.js'

/** Names appear in metrics, headers and errors. Names of digits only would lose their order in an object. */
const NAME = /^(?!\d+$)[A-Za-z0-9_][\w.-]*$/

/** A map of at least one named value, in the order of the file. */
export function readNamedMap<T>(
  what: string,
  read: (value: unknown, path: string, problems: OptionProblem[], name: string) => T,
  /** Schema of one value. */
  schema: () => JsonSchema | undefined,
): Check<ReadonlyMap<string, T>> {
  const check: Check<ReadonlyMap<string, T>> = (value, path, problems: ConfigProblem[]) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    const entries = isObject ? Object.entries(value) : []
    if (entries.length === 0) {
      problems.push({
        path,
        message: `must be an object with at least one ${what}, got ${found(value)}`,
      })
    }
    return new Map(
      entries.map(([name, item]) => {
        const at = `${path}.${name}`
        if (!NAME.test(name)) {
          const message = `a ${what}'s name must be letters, digits, _ . and -, and not digits alone`
          problems.push({ path: at, message, at: 'key' })
        }
        return [name, read(item, at, problems, name)]
      }),
    )
  }
  return described(check, () => ({
    type: 'object',
    minProperties: 1,
    propertyNames: { pattern: NAME.source },
    additionalProperties: schema(),
  }))
}

/** Describes the type of a value without showing it, because it may be secret. */
function found(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an empty one'
  return `a ${typeof value}`
}
