/** Time zones of limits per calendar day: whether there is one of this name, and its offsets from UTC. */
import { type Check, text } from '../../../core/options/checks.js'
import { describedAs } from '../../../core/options/schema.js'
import { suggest } from '../../../core/options/suggest.js'
import type { CalendarDay } from '../../../store/limit-spec.js'

const DAY_MS = 86_400_000
/** Offsets are known for this time from the pod's start on; the last one is used afterwards. */
const KNOWN_MS = 5 * 366 * DAY_MS

const readText = text()

/** The name of a time zone that this process knows. */
export const readTimeZone: Check<string> = (value, path, problems) => {
  const name = readText(value, path, problems)
  if (typeof value !== 'string' || value === '' || formatOf(name) !== undefined) return name
  const close = suggest(name, Intl.supportedValuesOf('timeZone'))
  const hint = close === undefined ? '' : `; did you mean '${close}'?`
  const message = `no time zone '${name}'${hint}; use a name of the IANA database, such as 'America/Los_Angeles' or 'UTC'`
  problems.push({ path, message })
  return name
}
describedAs(readTimeZone, readText)

const known = new Map<string, readonly number[]>()

/** The zone's offset two days before this time, and its changes in the years afterwards, as `CalendarDay` has them. */
export function offsetsOf(timeZone: string, wallMs: number): CalendarDay['offsets'] {
  const fromMs = Math.floor(wallMs / DAY_MS - 2) * DAY_MS
  const key = `${timeZone} ${fromMs}`
  const found = known.get(key) ?? findOffsets(timeZone, fromMs)
  // Guards of one process need the same offsets. A process that runs for months adds a key each day.
  if (!known.has(key) && known.size >= 100) known.clear()
  known.set(key, found)
  return found
}

function findOffsets(timeZone: string, fromMs: number): readonly number[] {
  const format = formatOf(timeZone)
  if (format === undefined) throw new RangeError(`no time zone '${timeZone}'`)
  const offsets = [offsetMs(format, fromMs) * 1_000]
  let before = offsets[0] as number
  // No zone changes its clock twice within a day.
  for (let atMs = fromMs; atMs < fromMs + KNOWN_MS; atMs += DAY_MS) {
    const after = offsetMs(format, atMs + DAY_MS) * 1_000
    if (after === before) continue
    offsets.push(changeMs(format, atMs, atMs + DAY_MS) * 1_000, after)
    before = after
  }
  return offsets
}

/** The change between two times with different offsets, to the second. */
function changeMs(format: Intl.DateTimeFormat, beforeMs: number, afterMs: number): number {
  const before = offsetMs(format, beforeMs)
  let [low, high] = [beforeMs, afterMs]
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000
    if (offsetMs(format, middle) === before) low = middle
    else high = middle
  }
  return high
}

/** `atMs`: whole seconds. */
function offsetMs(format: Intl.DateTimeFormat, atMs: number): number {
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {}
  for (const { type, value } of format.formatToParts(atMs)) part[type] = Number(value)
  const { year = 0, month = 1, day, hour, minute, second } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) - atMs
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  const numeric = 'numeric'
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    })
  } catch {
    return undefined
  }
}
