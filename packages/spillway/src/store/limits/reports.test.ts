import { expect, it } from 'vitest'
import { type Reports, reportRequests, totalRequests } from './reports.js'

const MINUTE_US = 60_000_000

it('requests of the last minute are those of all pods that reported within a minute', () => {
  const reports: Reports = new Map()
  reportRequests(reports, 'a', 10, 1)
  reportRequests(reports, 'b', 5, 1_000)
  reportRequests(reports, 'b', 7, 2_000)
  expect(totalRequests(reports, 2_000)).toBe(17)
  expect(totalRequests(reports, MINUTE_US)).toBe(17)
  expect(totalRequests(reports, MINUTE_US + 1)).toBe(7)
  expect(totalRequests(reports, MINUTE_US + 2_000)).toBe(0)
})

it('a pod without a report for a minute is forgotten with the next report of another pod', () => {
  const reports: Reports = new Map()
  for (let pod = 0; pod < 100; pod++) reportRequests(reports, `pod ${pod}`, 1, 1)
  reportRequests(reports, 'last', 1, MINUTE_US + 1)
  expect([...reports.keys()]).toEqual(['last'])
})
