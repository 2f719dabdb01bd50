import { describe, expect, it } from 'vitest'
import { fc } from '../../../../test/fast-check.js'
import { usualOrLong } from '../../../../test/long-run.js'
import { dayAt, dayEndUs } from '../../../store/calendar-day.js'
import { readLimits } from '../options.js'
import { offsetsOf } from './time-zone.js'

const START_MS = Date.UTC(2026, 10, 18)
const HOUR_US = 3_600_000_000

function dayOf(timeZone: string) {
  return { offsets: offsetsOf(timeZone, START_MS), quietUs: 0 }
}

/** Length of the day in which this time is, in hours. */
function hoursOf(timeZone: string, date: string): number {
  const day = dayOf(timeZone)
  const number = dayAt(day, Date.parse(date) * 1_000)
  return (dayEndUs(day, number) - dayEndUs(day, number - 1)) / HOUR_US
}

describe('time zones of limits', () => {
  it.each([
    ['America/Los_Angeles', '2027-03-14T20:00:00Z', 23],
    ['America/Los_Angeles', '2027-11-07T20:00:00Z', 25],
    ['America/Los_Angeles', '2027-07-01T20:00:00Z', 24],
    ['Europe/Berlin', '2027-03-28T10:00:00Z', 23],
    ['Australia/Lord_Howe', '2027-10-02T20:00:00Z', 23.5],
    ['UTC', '2027-03-14T20:00:00Z', 24],
  ])('the day of %s at %s has %s hours', (timeZone, date, hours) => {
    expect(hoursOf(timeZone, date)).toBe(hours)
  })

  it('a day begins and ends where the calendar of the time zone changes its date', () => {
    const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'))
    const times = fc.nat(4 * 365 * 24 * 3_600)
    fc.assert(
      fc.property(zones, times, (timeZone, seconds) => {
        const day = dayOf(timeZone)
        const format = new Intl.DateTimeFormat('en-CA', { timeZone })
        const dateAt = (us: number) => format.format(Math.floor(us / 1_000))
        const atUs = (START_MS + seconds * 1_000) * 1_000
        const number = dayAt(day, atUs)
        const [beginUs, endUs] = [dayEndUs(day, number - 1), dayEndUs(day, number)]
        expect(beginUs <= atUs && atUs < endUs).toBe(true)
        expect([dateAt(beginUs), dateAt(endUs - 1)]).toEqual([dateAt(atUs), dateAt(atUs)])
        expect(dateAt(beginUs - 1)).not.toBe(dateAt(atUs))
        expect(dateAt(endUs)).not.toBe(dateAt(atUs))
      }),
      { numRuns: usualOrLong(30, 150) },
    )
  })

  it.each([
    [
      { window: 'day', timeZone: 'America/Los_Angles' },
      'limits[0].timeZone',
      /did you mean 'America\/Los_Angeles'.*IANA/,
    ],
    [{ window: 'day', windowMs: '1m' }, 'limits[0].windowMs', /must not be set with window: 'day'/],
    [{ window: 'day', subWindowMs: '1m' }, 'limits[0].subWindowMs', /must not be set with window/],
    [
      { window: 'day', algorithm: 'sliding-window' },
      'limits[0].algorithm',
      /must not be set with window: 'day'/,
    ],
    [{ window: 'day', burst: 5 }, 'limits[0].burst', /must not be set with window: 'day'/],
    [{ window: 'day', slices: 5 }, 'limits[0].slices', /must not be set with window: 'day'/],
    [{ window: 'day', learn: true }, 'limits[0].learn', /paused until the vendor's reset/],
    [
      { windowMs: '1m', timeZone: 'UTC' },
      'limits[0].timeZone',
      /has an effect only with window: 'day'/,
    ],
    [{}, 'limits[0].windowMs', /is required.*window: 'day'/],
    [
      { windowMs: '1m', subWindowMs: '2m' },
      'limits[0].subWindowMs',
      /must be shorter than windowMs \(60000\)/,
    ],
    [{ windowMs: '1m', subWindowMs: 10 }, 'limits[0].subWindowMs', /must be at least 600 ms/],
    [
      { limit: 1, windowMs: '1m', subWindowMs: '10s' },
      'limits[0].subWindowMs',
      /must not be set: a limit of 1 in 60000 ms has no whole unit in 10000 ms/,
    ],
  ])('the limit %j is refused with its path and a remedy', (options, path, message) => {
    const problems: { path: string; message: string }[] = []
    readLimits([{ limit: 100, ...options }], 'limits', problems)
    expect(problems).toEqual([{ path, message: expect.stringMatching(message) }])
  })
})
