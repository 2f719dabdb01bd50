import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../../test/long-run.js'
import { calendarDay, untilMidnightMs } from './calendar-day.js'

/** At least one year, with all changes of the clock. */
const DAYS = usualOrLong(370, 1_100)
const LOS_ANGELES = 'America/Los_Angeles'
const day = (zone: string, at: string) => {
  const { startMs, endMs } = calendarDay(zone, Date.parse(at))
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString(), (endMs - startMs) / 3.6e6]
}

describe('calendarDay', () => {
  it.each([
    ['an ordinary day', '2026-11-18T22:00:00Z', '2026-11-18T08:00:00.000Z', 24],
    ['its first moment', '2026-11-18T08:00:00Z', '2026-11-18T08:00:00.000Z', 24],
    ['its last moment', '2026-11-19T07:59:59.999Z', '2026-11-18T08:00:00.000Z', 24],
    ['the day on which summer time begins', '2026-03-08T20:00:00Z', '2026-03-08T08:00:00.000Z', 23],
    ['the day on which summer time ends', '2026-11-01T08:30:00Z', '2026-11-01T07:00:00.000Z', 25],
  ])('in Los Angeles, %s is found', (_, at, start, hours) => {
    const [startsAt, , length] = day(LOS_ANGELES, at)
    expect([startsAt, length]).toEqual([start, hours])
  })

  it('a day begins at one o’clock where the clock skips midnight', () => {
    expect(day('Africa/Cairo', '2026-04-24T12:00:00Z')).toEqual([
      '2026-04-23T22:00:00.000Z',
      '2026-04-24T21:00:00.000Z',
      23,
    ])
  })

  it('days of a zone follow each other without a gap, whenever its clock changes', () => {
    for (const zone of [LOS_ANGELES, 'UTC', 'Asia/Kolkata', 'Europe/Berlin', 'Pacific/Apia']) {
      let at = Date.parse('2025-01-01T12:00:00Z')
      for (let each = 0; each < DAYS; each++) {
        const { startMs, endMs } = calendarDay(zone, at)
        expect(calendarDay(zone, endMs).startMs).toBe(endMs)
        expect(calendarDay(zone, startMs)).toEqual({ startMs, endMs })
        at = endMs
      }
    }
  })

  it('untilMidnightMs is the time until the next day', () => {
    expect(untilMidnightMs('UTC', Date.parse('2026-11-18T23:59:00Z'))).toBe(60_000)
  })
})
