/** The options of a limit, and their translation for the store. */
import {
  arrayOf,
  bool,
  type Check,
  type Duration,
  duration,
  integer,
  type OptionProblem,
  OptionsError,
  object,
  oneOf,
  optional,
  text,
  together,
} from '../../core/options/checks.js'
import { describedAs } from '../../core/options/schema.js'
import { suggest } from '../../core/options/suggest.js'
import { DAY_US } from '../../store/calendar-day.js'
import type { LimitSpec } from '../../store/limit-spec.js'
import { limitOutage, type OutageRule } from '../outage/rules.js'
import { offsetsOf, readTimeZone } from './settings/time-zone.js'

/** One limit of a vendor, shared by all pods. */
export interface SharedLimit {
  /**
   * The counted unit: `requests` (1 per call unless its cost says otherwise), `tokens`, `inputTokens`, `outputTokens`, or a
   * name of your own that calls have in their `cost`. Default: `requests`.
   */
  unit?: string
  /** Most units in a window, of all pods together. Range: integers from 1. */
  limit: number
  /** Time in which `limit` units are allowed. Range: from 1 ms. Default: none; either this or `window` is required. */
  windowMs?: Duration
  /**
   * `day`: counts calendar days of `timeZone`, in place of `windowMs`. A day may have 23 or 25 hours. Default: none.
   */
  window?: 'day'
  /** With `window: 'day'`: the time zone whose midnight resets the limit, by its IANA name. Default: `UTC`. */
  timeZone?: string
  /**
   * For vendors that enforce a limit over shorter periods as well: the part of `limit` that belongs to this period also
   * holds within it. Range: from 1 ms, less than `windowMs`, and long enough for one unit. Default: none.
   */
  subWindowMs?: Duration
  /**
   * How units are counted in `windowMs`. `sliding-window` never exceeds the limit in any window. Default: `sliding-window`.
   */
  algorithm?: LimitSpec['algorithm']
  /** `token-bucket` only: units that may be taken at once. Range: integers from 1. Default: `limit`. */
  burst?: number
  /** `sliding-window` only: number of slices of the window. Range: integers from 1 to 100. Default: 30. */
  slices?: number
  /** One count for each lane, or one for all lanes together. Default: `lane`. */
  per?: 'lane' | 'vendor'
  /**
   * If the vendor refuses calls (429) below this limit, lowers it for the whole fleet to what the vendor accepts, and
   * raises it again step by step, never above `limit`. Default: false.
   */
  learn?: boolean
  /**
   * What this pod does while the store is unreachable. `share`: allows its equal part of the limit. `local`: allows the
   * whole limit. `allow`: allows all calls. `refuse`: refuses all. Default: `share`.
   */
  outage?: OutageRule
}

const MOST_LIMITS = 16

/** Units that Spillway charges by itself. A limit in any other unit holds only for calls whose cost names that unit. */
const BUILT_IN_UNITS = ['requests', 'tokens', 'inputTokens', 'outputTokens']

/** Any name is a unit, except properties of every object and misspelt built-in units, which no call would charge. */
const readUnit: Check<string> = (value, path, problems) => {
  const unit = readText(value, path, problems)
  if (typeof value !== 'string' || BUILT_IN_UNITS.includes(value)) return unit
  if (value in Object.prototype) {
    const message = `must not be '${value}', a property of every object; choose a name such as 'tokens'`
    problems.push({ path, message })
  }
  const close = suggest(value, BUILT_IN_UNITS)
  // A name that begins with a unit, such as `tokensOfImages`, is no misspelling of it.
  if (close === undefined || value.length > close.length + 2) return unit
  const message = `no call is charged in '${value}'; did you mean '${close}'? A unit of your own needs another name`
  problems.push({ path, message })
  return unit
}
const readText = text()
describedAs(readUnit, readText)

/** Suggests `windowMs` for a duration, because `window` is the more obvious name. */
const readWindow: Check<'day'> = (value, path, problems) => {
  if (value === 'day') return value
  const message = `must be 'day', got ${JSON.stringify(value)}; for a duration, use windowMs`
  problems.push({ path, message })
  return 'day'
}
describedAs(readWindow, oneOf('day'))

const readFields = object({
  unit: optional(readUnit, 'requests'),
  limit: integer({ min: 1 }),
  windowMs: optional(duration({ min: 1 })),
  window: optional(readWindow),
  timeZone: optional(readTimeZone),
  subWindowMs: optional(duration({ min: 1 })),
  algorithm: optional(oneOf('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window')),
  burst: optional(integer({ min: 1 })),
  slices: optional(integer({ min: 1, max: 100 })),
  per: optional(oneOf('lane', 'vendor'), 'lane'),
  learn: optional(bool(), false),
  outage: limitOutage,
})

const readLimit = together(readFields, (limit, path, problems) => {
  const { window, algorithm = 'sliding-window', burst, slices } = limit
  checkWindow(limit, path, problems)
  if (window === 'day') return checkDay(limit, path, problems)
  if (burst !== undefined && algorithm !== 'token-bucket') {
    problems.push(only(`${path}.burst`, 'token-bucket'))
  }
  if (slices !== undefined && algorithm !== 'sliding-window') {
    problems.push(only(`${path}.slices`, 'sliding-window'))
  }
})

type CheckedLimit = ReturnType<typeof readFields>

/** A limit has one window, and the options that belong to it. */
function checkWindow(limit: CheckedLimit, path: string, problems: OptionProblem[]): void {
  const { windowMs, window, timeZone, subWindowMs } = limit
  if (windowMs === undefined && window === undefined) {
    const message = "is required, such as '1m'; or use window: 'day' for calendar days"
    problems.push({ path: `${path}.windowMs`, message })
  }
  if (timeZone !== undefined && window !== 'day') {
    problems.push({ path: `${path}.timeZone`, message: "has an effect only with window: 'day'" })
  }
  if (subWindowMs === undefined || windowMs === undefined) return
  if (subWindowMs >= windowMs) {
    const message = `must be shorter than windowMs (${windowMs})`
    return void problems.push({ path: `${path}.subWindowMs`, message })
  }
  if (subLimit(limit.limit, windowMs, subWindowMs) > 0) return
  const leastMs = Math.ceil(windowMs / limit.limit)
  const remedy = leastMs < windowMs ? `must be at least ${leastMs} ms` : 'must not be set'
  const message = `${remedy}: a limit of ${limit.limit} in ${windowMs} ms has no whole unit in ${subWindowMs} ms`
  problems.push({ path: `${path}.subWindowMs`, message })
}

/** Options that calendar days do not have. */
function checkDay(limit: CheckedLimit, path: string, problems: OptionProblem[]): void {
  for (const name of ['windowMs', 'subWindowMs', 'algorithm', 'burst', 'slices'] as const) {
    if (limit[name] === undefined) continue
    problems.push({ path: `${path}.${name}`, message: "must not be set with window: 'day'" })
  }
  if (limit.learn !== true) return
  const message =
    "must not be true with window: 'day': after a refusal the lane is paused until the vendor's reset"
  problems.push({ path: `${path}.learn`, message })
}

/** The part of a limit that belongs to the sub-window. */
function subLimit(limit: number, windowMs: number, subWindowMs: number): number {
  return Math.floor((limit * subWindowMs) / windowMs)
}

export const readLimits = together(arrayOf(readLimit), (limits, path, problems) => {
  if (limits.length > 0 && limits.length <= MOST_LIMITS) return
  problems.push({ path, message: `must be 1 to ${MOST_LIMITS} limits` })
})

/** A limit with the unit it is charged in. */
export interface UnitLimit {
  unit: string
  spec: LimitSpec
  /** Part of another limit, for a shorter period. Default: false. */
  isSubWindow?: boolean
}

/** Further inputs of a guard's limits. */
export interface SpecContext {
  /**
   * Widens every window. A call reaches the vendor up to that much later than its permit was granted, so two calls can
   * be that much closer together at the vendor than in the store's count. At the end of a calendar day nothing is
   * granted for this time.
   */
  jitterMs: number
  /** For time zones. */
  wallMs: number
  /** For limits that do not hold for every lane of the guard. Their ids have a suffix. */
  only?: { span: LimitSpec['span']; suffix: string }
}

/** A limit with a sub-window becomes two. */
export function toUnitLimits(
  limits: ReturnType<typeof readLimits>,
  context: SpecContext,
): (UnitLimit & { outage: OutageRule })[] {
  const { only: part } = context
  const seen = new Map<string, number>()
  return limits.flatMap((limit) => {
    const { unit, outage, windowMs = 0, subWindowMs } = limit
    const number = (seen.get(unit) ?? 0) + 1
    seen.set(unit, number)
    const id = `${unit}${part?.suffix ?? ''}${number === 1 ? '' : `#${number}`}`
    const whole = { unit, outage, spec: specOf(id, limit, context) }
    if (subWindowMs === undefined) return [whole]
    const units = subLimit(limit.limit, windowMs, subWindowMs)
    const sub = { ...limit, limit: units, windowMs: subWindowMs, ...WHOLE_SUB_WINDOW }
    const subId = `${id}/${subWindowMs % 1_000 === 0 ? `${subWindowMs / 1_000}s` : `${subWindowMs}ms`}`
    return [whole, { unit, outage, spec: specOf(subId, sub, context), isSubWindow: true }]
  })
}

/** The id of a limit for people: `requests/10s` becomes `requests within 10s`. Ids of whole limits are unchanged. */
export function limitLabel(id: string): string {
  return id.replace(/\/(\d+m?s)$/, ' within $1')
}

/** A refusal is about the whole window, so sub-windows do not learn. */
const WHOLE_SUB_WINDOW = {
  algorithm: 'sliding-window',
  burst: 0,
  slices: 30,
  learn: false,
} as const

function specOf(id: string, limit: CheckedLimit, context: SpecContext): LimitSpec {
  const { jitterMs, wallMs, only: part } = context
  const { burst = 0, slices = 30, window, timeZone = 'UTC', learn } = limit
  const span = part?.span ?? limit.per
  const jitterUs = Math.ceil(jitterMs * 1_000)
  const common = { id, limit: limit.limit, slices, burst, span }
  if (window === 'day') {
    const day = { offsets: offsetsOf(timeZone, wallMs), quietUs: jitterUs }
    return { ...common, algorithm: 'fixed-window', windowUs: DAY_US, day }
  }
  const { algorithm = 'sliding-window', windowMs = 0 } = limit
  const spec = { ...common, algorithm, windowUs: Math.ceil((windowMs + jitterMs) * 1_000) }
  // Absent otherwise, so that limits without it are written as before.
  return learn ? { ...spec, learn } : spec
}

/** The default of `jitterMs`. */
export function usualJitterMs(limits: ReturnType<typeof readLimits>): number {
  const windows = limits.map(({ windowMs, subWindowMs }) => subWindowMs ?? windowMs)
  const shortestMs = Math.min(...windows.map((each) => each ?? DAY_US / 1_000))
  return Math.min(100, Math.max(10, shortestMs / 20))
}

export function unknownUnit(path: string, unit: string, known: readonly string[]): OptionsError {
  const close = suggest(unit, known)
  const hint = close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
  return new OptionsError([{ path, message: `no limit on '${unit}'; ${hint}` }])
}

function only(path: string, algorithm: string): OptionProblem {
  return { path, message: `has an effect only with algorithm '${algorithm}'` }
}
