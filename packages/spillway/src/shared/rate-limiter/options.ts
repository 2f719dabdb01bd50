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
import type { LimitSpec } from '../../store/limit-spec.js'
import { limitOutage, type OutageRule } from '../outage/rules.js'

/** One limit of a vendor, shared by all pods. */
export interface SharedLimit {
  /** The counted unit: `requests` (1 per call unless its cost says otherwise), `tokens` or any other. Default: `requests`. */
  unit?: string
  /** Units per window. Range: integers from 1. */
  limit: number
  /** Length of the window. Range: from 1 ms. */
  windowMs: Duration
  /**
   * How units are counted. `sliding-window` never exceeds the limit in any window. Default: `sliding-window`.
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
  /** What this pod does while the store is unreachable. Default: `share`, its equal share of the limit. */
  outage?: OutageRule
}

const MOST_LIMITS = 16

/** Not allowed as units, because every object has these properties. */
const readUnit: Check<string> = (value, path, problems) => {
  if (typeof value !== 'string' || !(value in Object.prototype))
    return readText(value, path, problems)
  const message = `must not be '${value}', a property of every object; choose a name such as 'tokens'`
  problems.push({ path, message })
  return value
}
const readText = text()
describedAs(readUnit, readText)

const readLimit = together(
  object({
    unit: optional(readUnit, 'requests'),
    limit: integer({ min: 1 }),
    windowMs: duration({ min: 1 }),
    algorithm: optional(
      oneOf('sliding-window', 'token-bucket', 'leaky-bucket', 'fixed-window'),
      'sliding-window',
    ),
    burst: optional(integer({ min: 1 })),
    slices: optional(integer({ min: 1, max: 100 })),
    per: optional(oneOf('lane', 'vendor'), 'lane'),
    learn: optional(bool(), false),
    outage: limitOutage,
  }),
  ({ algorithm, burst, slices }, path, problems) => {
    if (burst !== undefined && algorithm !== 'token-bucket') {
      problems.push(only(`${path}.burst`, 'token-bucket'))
    }
    if (slices !== undefined && algorithm !== 'sliding-window') {
      problems.push(only(`${path}.slices`, 'sliding-window'))
    }
  },
)

export const readLimits = together(arrayOf(readLimit), (limits, path, problems) => {
  if (limits.length > 0 && limits.length <= MOST_LIMITS) return
  problems.push({ path, message: `must be 1 to ${MOST_LIMITS} limits` })
})

/** A limit with the unit it is charged in. */
export interface UnitLimit {
  unit: string
  spec: LimitSpec
}

/**
 * `jitterMs` widens every window. A call reaches the vendor up to that much later than its permit was granted, so
 * two calls can be that much closer together at the vendor than in the store's count.
 */
export function toUnitLimits(
  limits: ReturnType<typeof readLimits>,
  jitterMs: number,
  /** For limits that do not hold for every lane of the guard. Their ids have a suffix. */
  only?: { span: LimitSpec['span']; suffix: string },
): readonly UnitLimit[] {
  const seen = new Map<string, number>()
  return limits.map(({ unit, limit, windowMs, algorithm, burst = 0, slices = 30, per, learn }) => {
    const number = (seen.get(unit) ?? 0) + 1
    seen.set(unit, number)
    const windowUs = Math.ceil((windowMs + jitterMs) * 1_000)
    const id = `${unit}${only?.suffix ?? ''}${number === 1 ? '' : `#${number}`}`
    const spec = { id, algorithm, limit, windowUs, slices, burst, span: only?.span ?? per }
    // Absent otherwise, so that limits without it are written as before.
    return { unit, spec: learn ? { ...spec, learn } : spec }
  })
}

/** The default of `jitterMs`. */
export function usualJitterMs(limits: readonly { windowMs: number }[]): number {
  const shortestMs = Math.min(...limits.map(({ windowMs }) => windowMs))
  return Math.min(100, Math.max(10, shortestMs / 20))
}

export function unknownUnit(path: string, unit: string, known: readonly string[]): OptionsError {
  const close = suggest(unit, known)
  const hint = close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
  return new OptionsError([{ path, message: `no limit on '${unit}'; ${hint}` }])
}

function only(path: string, algorithm: string): OptionProblem {
  return { path, message: `only has a meaning with algorithm '${algorithm}'` }
}
