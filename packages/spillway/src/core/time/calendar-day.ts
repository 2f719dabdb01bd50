/** The calendar day that a moment belongs to, in a time zone. Days with a change of the clock have 23 or 25 hours. */

export interface CalendarDay {
  /** Milliseconds since 1970. */
  readonly startMs: number
  /** The start of the next day. */
  readonly endMs: number
}

const HOUR_MS = 3_600_000
/** Longer than any calendar day. */
const LONGEST_DAY_MS = 26 * HOUR_MS

/** By zone: creating one takes longer than all its uses. */
const formats = new Map<string, Intl.DateTimeFormat>()
/** The last day asked for, by zone. */
const days = new Map<string, CalendarDay>()

/** Throws a RangeError if there is no such zone. */
function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
    formats.set(zone, format)
  }
  return format
}

export function calendarDay(zone: string, wallMs: number): CalendarDay {
  const known = days.get(zone)
  if (known !== undefined && wallMs >= known.startMs && wallMs < known.endMs) return known
  const format = formatOf(zone)
  const date = format.format(wallMs)
  const isToday = (ms: number) => format.format(ms) === date
  const day = {
    startMs: changeBetween(wallMs - LONGEST_DAY_MS, wallMs, (ms) => !isToday(ms)),
    endMs: changeBetween(wallMs, wallMs + LONGEST_DAY_MS, isToday),
  }
  days.set(zone, day)
  return day
}

/** Time until the next day begins. */
export function untilMidnightMs(zone: string, wallMs: number): number {
  return calendarDay(zone, wallMs).endMs - wallMs
}

/** The first whole second after `fromMs` at which `holds` does not hold any more. It holds at `fromMs`, not at `toMs`. */
function changeBetween(fromMs: number, toMs: number, holds: (ms: number) => boolean): number {
  let [before, after] = [Math.floor(fromMs / 1_000), Math.ceil(toMs / 1_000)]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (holds(middle * 1_000)) before = middle
    else after = middle
  }
  return after * 1_000
}
