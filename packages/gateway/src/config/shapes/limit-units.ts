/** What limits of a vendor may count. In a unit that nothing is ever charged in, a limit would be none. */
import { type Check, type JsonSchema, oneOf, schemaOf } from 'spillway/options'
import type { ProtocolName } from '../config.js'
import type { ConfigProblem } from '../config-error.js'

/** By what requests are charged in; of bodies that are not understood, nothing is known but their number. */
export const LIMIT_UNITS = {
  openai: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  anthropic: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  gemini: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  azure: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  http: ['requests'],
} as const satisfies Record<ProtocolName, readonly string[]>

const readUnit: Check<string> = oneOf(...LIMIT_UNITS.openai)

/** What is no unit at all, the guard's own check complains of. */
export function checkUnits(
  limits: unknown,
  path: string,
  problems: ConfigProblem[],
  protocol: ProtocolName | undefined,
): void {
  for (const [index, limit] of Array.isArray(limits) ? limits.entries() : []) {
    const unit = (limit as { unit?: unknown } | null)?.unit
    if (typeof unit !== 'string' || unit === '') continue
    const at = `${path}[${index}].unit`
    if (protocol !== 'http') readUnit(unit, at, problems)
    else if (unit !== 'requests') {
      const message = `must be 'requests': what else a request to an http vendor costs is not known`
      problems.push({ path: at, message })
    }
  }
}

/** Limits of a vendor follow what the vendor gives, unless the file says otherwise. */
export function withLearning<T>(limits: T): T {
  if (!Array.isArray(limits)) return limits
  // A vendor's refusal says nothing about its limit per day: that pauses the lane until the reset.
  const learns = (limit: unknown) =>
    typeof limit === 'object' && limit !== null && !('window' in limit)
  return limits.map((limit) => (learns(limit) ? { learn: true, ...limit } : limit)) as T
}

/** The schema of limits, with those units and that default. */
export function withUnits(limits: JsonSchema): JsonSchema {
  const items = limits.items as { properties: Record<string, JsonSchema> }
  const learn = { ...items.properties.learn, default: true }
  const properties = { ...items.properties, unit: schemaOf(readUnit), learn }
  return { ...limits, items: { ...items, properties } }
}
