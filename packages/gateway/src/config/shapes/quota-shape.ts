/** The option `quota`: counting rules of a vendor, and their effect on its limits. */
import { nameOr, type QuotaName, quotaFields, readTimeZone } from 'spillway/internal'
import { about, duration, either, object, oneOf, optional } from 'spillway/options'
import type { VendorConfig } from '../config.js'

const readPeriod = duration({ min: 1 })

/** A preset, or an object with a preset and single rules that differ. */
export const readVendorQuota = nameOr(
  object({
    ...quotaFields,
    subWindowMs: about(
      'Limits on requests also hold within periods of this length. `none`: they do not. Default: 10 seconds for `azure`, otherwise none.',
      optional(either(readPeriod, oneOf('none'))),
    ),
    timeZone: about(
      'Time zone of limits with `window: day`, by its IANA name. Default: `America/Los_Angeles` for `gemini`, otherwise `UTC`.',
      optional(readTimeZone),
    ),
  }),
)

type WrittenQuota = ReturnType<typeof readVendorQuota> | undefined

/** Rules about windows. */
interface WindowRules {
  /** Limits on requests hold in periods of this length as well. */
  readonly subWindowMs?: number
  /** Time zone of calendar days. */
  readonly timeZone?: string
}

/** See docs/gateway/quotas.md for the sources. */
const WINDOWS: Partial<Record<QuotaName, WindowRules>> = {
  azure: { subWindowMs: 10_000 },
  gemini: { timeZone: 'America/Los_Angeles' },
}

/** `defaultPreset`: used if the file names none. */
export function quotaRules(
  written: WrittenQuota,
  defaultPreset: QuotaName,
): { quota: VendorConfig['quota']; windows: WindowRules } {
  if (typeof written !== 'object') {
    const quota = written ?? defaultPreset
    return { quota, windows: WINDOWS[quota] ?? {} }
  }
  const { subWindowMs, timeZone, ...rules } = written
  const preset = rules.preset ?? defaultPreset
  const known = WINDOWS[preset] ?? {}
  const subMs = subWindowMs ?? known.subWindowMs
  const zone = timeZone ?? known.timeZone
  return {
    quota: { ...rules, preset },
    windows: {
      ...(typeof subMs === 'number' && { subWindowMs: subMs }),
      ...(zone !== undefined && { timeZone: zone }),
    },
  }
}

/** The limits with the vendor's time zone and sub-windows, unless the file sets them. */
export function withWindows<T>(limits: T, { subWindowMs, timeZone }: WindowRules): T {
  if (!Array.isArray(limits)) return limits
  return limits.map((limit: unknown) => {
    if (typeof limit !== 'object' || limit === null) return limit
    const { unit = 'requests', window, windowMs, limit: units } = limit as Record<string, unknown>
    if (window === 'day') return timeZone === undefined ? limit : { timeZone, ...limit }
    if (subWindowMs === undefined || unit !== 'requests') return limit
    const wholeMs = readPeriod(windowMs, '', [])
    // A limit with less than one unit per part applies to the whole window only.
    const hasPart = wholeMs > subWindowMs && (Number(units) * subWindowMs) / wholeMs >= 1
    return hasPart ? { subWindowMs, ...limit } : limit
  }) as T
}
