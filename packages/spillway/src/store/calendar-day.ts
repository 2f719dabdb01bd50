/**
 * Days of a time zone, for limits that a vendor resets at midnight. A pod knows the zone's rules and sends its offsets
 * from UTC; the store's clock decides which day it is. Twin: `redis/lua/include/calendar-day.lua`.
 */
import type { CalendarDay, LimitSpec } from './limit-spec.js'

/** The nominal length of a day, by which days are numbered. Days with a change of the clock are shorter or longer. */
export const DAY_US = 86_400_000_000

/** Number of the day, counted from 1970 in local time. */
export function dayAt({ offsets }: CalendarDay, atUs: number): number {
  let offsetUs = offsets[0] as number
  for (let index = 1; index < offsets.length; index += 2) {
    if ((offsets[index] as number) <= atUs) offsetUs = offsets[index + 1] as number
  }
  return Math.floor((atUs + offsetUs) / DAY_US)
}

/** When the day ends: the first time of a later day. */
export function dayEndUs({ offsets }: CalendarDay, day: number): number {
  let endUs = (day + 1) * DAY_US - (offsets[0] as number)
  for (let index = 1; index < offsets.length; index += 2) {
    const changeUs = offsets[index] as number
    if (endUs < changeUs) return endUs
    endUs = Math.max(changeUs, (day + 1) * DAY_US - (offsets[index + 1] as number))
  }
  return endUs
}

/** The day of a fixed window, unless the count still refers to a window of another length. */
function dayOf({ day }: LimitSpec, sliceUs: number): CalendarDay | undefined {
  return sliceUs === DAY_US ? day : undefined
}

/** Number of the fixed window at a time. */
export function windowAt(spec: LimitSpec, sliceUs: number, atUs: number): number {
  const day = dayOf(spec, sliceUs)
  return day === undefined ? Math.floor(atUs / sliceUs) : dayAt(day, atUs)
}

/** When the fixed window of this number ends. */
export function windowEndUs(spec: LimitSpec, sliceUs: number, window: number): number {
  const day = dayOf(spec, sliceUs)
  return day === undefined ? (window + 1) * sliceUs : dayEndUs(day, window)
}

/**
 * The day is about to end. A call that is granted now may reach the vendor on the next day, and would be missing in
 * the count of that day.
 */
export function isEnding(spec: LimitSpec, sliceUs: number, window: number, now: number): boolean {
  const day = dayOf(spec, sliceUs)
  return day !== undefined && now >= dayEndUs(day, window) - day.quietUs
}

/** Until when units used at this time count. */
export function countsUntilUs(spec: LimitSpec, usedUs: number): number {
  const { day, windowUs } = spec
  return day === undefined ? usedUs + windowUs : dayEndUs(day, dayAt(day, usedUs))
}
