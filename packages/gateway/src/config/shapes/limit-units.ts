/** Units that limits of a vendor may count. A limit in a unit that is never charged would have no effect. */
import { type Check, type JsonSchema, oneOf, schemaOf } from 'spillway/options'
import type { ProtocolName } from '../config.js'
import type { ConfigProblem } from '../config-error.js'

/** Units charged by each protocol; of unknown bodies only the number is known. */
export const LIMIT_UNITS = {
  openai: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  anthropic: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  gemini: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  azure: ['requests', 'tokens', 'inputTokens', 'outputTokens'],
  http: ['requests'],
} as const satisfies Record<ProtocolName, readonly string[]>

const readUnit: Check<string> = oneOf(...LIMIT_UNITS.openai)

/**
 * The guard's check reports units that are no text. For a misspelt unit its message would mention custom units, so the
 * message of this check replaces it.
 */
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
    const ofGuard = problems.findIndex((problem) => problem.path === at)
    if (ofGuard !== -1) problems.splice(ofGuard, 1)
    if (protocol !== 'http') readUnit(unit, at, problems)
    else if (unit !== 'requests') {
      const message = `must be 'requests': what else a request to an http vendor costs is not known`
      problems.push({ path: at, message })
    }
  }
}

/** Vendor limits are learned unless the file disables it. */
export function withLearning<T>(limits: T): T {
  if (!Array.isArray(limits)) return limits
  // Daily limits are not learned: their refusal pauses the lane until the reset.
  const learns = (limit: unknown) =>
    typeof limit === 'object' && limit !== null && !('window' in limit)
  return limits.map((limit) => (learns(limit) ? { learn: true, ...limit } : limit)) as T
}

/** The schema of limits, with those units and that default. */
export function withUnits(limits: JsonSchema): JsonSchema {
  const items = limits.items as { properties: Record<string, JsonSchema> }
  const learn = { ...items.properties.learn, default: true }
  const unit = {
    ...schemaOf(readUnit),
    default: 'requests',
    description:
      'The counted unit. `tokens` are prompt and answer together. Vendors of protocol `http` have only `requests`.',
  }
  const properties = { ...items.properties, unit, learn }
  return { ...limits, items: { ...items, properties } }
}
