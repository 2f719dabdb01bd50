/**
 * Limits of single models, and pools that several models share. A vendor with several keys counts each key
 * separately, so every key has its own limits and pools.
 */
import type { GuardOptions } from 'spillway'
import { type JsonSchema, readGuardOptions, schemaOf } from 'spillway/options'
import type { ModelLimitsConfig, PoolsConfig, ProtocolName } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { checkUnits, withUnits } from './limit-units.js'

/** Of models and keys together. */
const MOST_ENTRIES = 1_000

export interface ModelLimits {
  readonly models?: readonly ModelLimitsConfig[]
  readonly pools?: PoolsConfig
}

/** Read by the guard's own checks, in which a model is a lane. */
export function readModelLimits(
  { models, pools }: Readonly<Record<string, unknown>>,
  path: string,
  problems: ConfigProblem[],
  protocol: ProtocolName | undefined,
): ModelLimits {
  if (models === undefined && pools === undefined) return {}
  if (protocol === 'http') {
    const option = models === undefined ? 'pools' : 'models'
    const message = 'has no meaning with protocol http, whose requests have no model'
    problems.push({ path: `${path}.${option}`, message, at: 'key' })
    return {}
  }
  const found: ConfigProblem[] = []
  const written = {
    ...(models !== undefined && { lanes: models }),
    ...(pools !== undefined && { pools }),
  }
  readGuardOptions(written as GuardOptions, path, found)
  for (const each of found) {
    problems.push({ ...each, path: asModels(each.path, path), message: inOwnTerms(each.message) })
  }
  if (found.length > 0) return {}
  const checked = written as { lanes?: ModelLimitsConfig[]; pools?: PoolsConfig }
  for (const [index, { limits }] of (checked.lanes ?? []).entries()) {
    checkUnits(limits, `${path}.models[${index}].limits`, problems, protocol)
  }
  for (const [name, { limits }] of Object.entries(checked.pools ?? {})) {
    checkUnits(limits, `${path}.pools.${name}.limits`, problems, protocol)
  }
  return {
    ...(checked.lanes !== undefined && { models: checked.lanes }),
    ...(checked.pools !== undefined && { pools: checked.pools }),
  }
}

function asModels(problemPath: string, path: string): string {
  const lanes = `${path}.lanes`
  return problemPath.startsWith(lanes)
    ? `${path}.models${problemPath.slice(lanes.length)}`
    : problemPath
}

function inOwnTerms(message: string): string {
  return message.replaceAll('`lanes`', '`models`').replaceAll("the guard's", "the vendor's")
}

/** The options of the guard, whose lanes are models or, with several keys, `model (key)`. */
export function guardLanes(
  written: ModelLimits,
  keys: readonly string[],
  path: string,
  problems: ConfigProblem[],
  /** Properties of the vendor that its limits depend on. */
  counted: <T>(limits: T) => T,
): Pick<GuardOptions, 'lanes' | 'pools'> {
  if (written.models === undefined) return {}
  const models = written.models.map((each) =>
    each.limits === undefined ? each : { ...each, limits: counted(each.limits) },
  )
  const pools = written.pools && countedPools(written.pools, counted)
  if (keys.length <= 1) return { lanes: models, ...(pools && { pools }) }
  if (models.length * keys.length > MOST_ENTRIES) {
    const message = `must have at most ${MOST_ENTRIES} entries for all ${keys.length} keys together`
    problems.push({ path: `${path}.models`, message })
  }
  const lanes = models.flatMap(({ match, pool, ...rest }) =>
    keys.map((key) => ({
      ...rest,
      match: `${match} (${key})`,
      ...(pool !== undefined && { pool: `${pool} (${key})` }),
    })),
  )
  const ofKeys = Object.entries(pools ?? {}).flatMap(([name, pool]) =>
    keys.map((key) => [`${name} (${key})`, pool] as const),
  )
  return { lanes, ...(pools && { pools: Object.fromEntries(ofKeys) }) }
}

function countedPools(pools: PoolsConfig, counted: <T>(limits: T) => T): PoolsConfig {
  const all = Object.entries(pools).map(([name, pool]) => [
    name,
    { ...pool, limits: counted(pool.limits) },
  ])
  return Object.fromEntries(all)
}

/** The schemas of both options, by name. */
export function modelLimitsSchema(name: 'models' | 'pools'): JsonSchema | undefined {
  const { properties } = schemaOf(readGuardOptions) as { properties: Record<string, JsonSchema> }
  if (name === 'models') {
    const lanes = properties.lanes as { items: JsonSchema }
    return { ...lanes, items: inTermsOfModels(lanes.items, ENTRY_TEXTS) }
  }
  const all = properties.pools as { additionalProperties: JsonSchema }
  return { ...all, additionalProperties: inTermsOfModels(all.additionalProperties, POOL_TEXTS) }
}

const ENTRY_TEXTS = {
  match: 'Name of the model; `*` stands for any characters.',
  limits: 'Limits of each matching model, in place of those of the vendor: 1 to 16. Default: none.',
  pool: 'Pool that the matching models share: a name in `pools`. Default: none.',
}
const POOL_TEXTS = {
  limits: 'Limits that every request for a model of the pool is charged to: 1 to 16.',
}

/** Limits of all models together belong to the vendor. */
function perModel(limits: JsonSchema): JsonSchema {
  const items = limits.items as { properties: Record<string, JsonSchema> }
  const description = 'Always `lane` here. A limit of all models belongs to `limits` of the vendor.'
  const per = { enum: ['lane'], default: 'lane', description }
  return { ...limits, items: { ...items, properties: { ...items.properties, per } } }
}

function inTermsOfModels(schema: JsonSchema, texts: Readonly<Record<string, string>>): JsonSchema {
  const properties = schema.properties as Record<string, JsonSchema>
  const all = { ...properties, limits: perModel(withUnits(properties.limits ?? {})) }
  const described = Object.entries(all).map(([name, each]) => {
    return [name, { ...each, description: texts[name] }]
  })
  return { ...schema, properties: Object.fromEntries(described) }
}
