// test-group: io

/** Thousands of malformed requests: none crashes the gateway, hangs or reaches a vendor. */
import { expect, it } from 'vitest'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { startGateway } from '../gateway-kit.js'
import { dice, mutate } from './mutate.js'
import { cut, oddRequests } from './odd-requests.js'
import { countRequests } from './oracle.js'
import { say } from './raw.js'
import { TRICKS, VALID, VALID_CHUNKED } from './tricks.js'

const MALFORMED = usualOrLong(2_500, 50_000)
/** Requests with odd details, cut anywhere and surrounded by valid ones. */
const CUT = usualOrLong(2_000, 30_000)
const AT_ONCE = 24
const SEED = 11

const GOOD = [
  VALID,
  VALID_CHUNKED,
  'GET /v1/models?limit=3&a[b]=c HTTP/1.1\r\nHost: a\r\nanthropic-version: 2023-06-01\r\n\r\n',
  'GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /v1/messages HTTP/1.1\r\nHost: a\r\nx-api-key: k\r\nContent-Type: application/json\r\nContent-Length: 47\r\n\r\n{"model":"claude","max_tokens":1,"messages":[]}',
]
/** As many of these as of the others. */
const TRICKY = Object.values(TRICKS).map(([request]) => request)

/** Counts what happened to the requests that `next` creates, until `isEnough`. */
async function fuzz(
  url: string,
  next: () => readonly Buffer[],
  isEnough: (counts: { malformed: number; wellFormed: number }) => boolean,
) {
  const counts = { malformed: 0, wellFormed: 0, allowed: 0, answers: 0, admitted: 0, silent: 0 }
  const work = async () => {
    while (!isEnough(counts)) {
      const pieces = next()
      const request = Buffer.concat(pieces).toString('latin1')
      const allowed = countRequests(request)
      if (allowed === 0) counts.malformed++
      else counts.wellFormed++
      counts.allowed += allowed
      const { statuses, text, closed } = await say(url, pieces, { endAfter: allowed })
      const good = (text.match(/spillway-attempts: [1-9]/g) ?? []).length
      const isInternal = statuses.some((status) => [500, 502, 503, 504].includes(status))
      if (!closed || good > allowed || isInternal) {
        const what = JSON.stringify({ allowed, closed, text, request: request.slice(0, 1_000) })
        expect.fail(what)
      }
      counts.answers += statuses.length
      counts.admitted += good
      if (statuses.length === 0) counts.silent++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return counts
}

it('a malformed request never crashes the gateway, hangs, goes unlogged or reaches a vendor', async () => {
  const { url, vendor, records, failures, chat } = await startGateway()
  const random = dice(SEED)
  const { malformed, wellFormed, answers, admitted, silent } = await fuzz(
    url,
    () => [Buffer.from(mutate(random.below(2) === 0 ? GOOD : TRICKY, random), 'latin1')],
    (counts) => counts.malformed >= MALFORMED,
  )
  expect(vendor.counts.arrived).toBe(admitted)
  expect(failures).toEqual([])
  // Makes sure that both kinds are covered.
  expect(malformed).toBeGreaterThanOrEqual(MALFORMED)
  expect(wellFormed).toBeGreaterThan(MALFORMED / 40)
  expect(admitted).toBeGreaterThan(MALFORMED / 90)
  // Only input that cannot be answered gets no answer; everything else is answered and logged.
  expect(silent).toBeLessThan(malformed / 20)
  expect(records.length).toBeGreaterThan(answers * 0.9)
  expect((await chat()).status).toBe(200)
})

it('a malformed request that is cut anywhere never crashes the gateway, hangs or reaches a vendor', async () => {
  const { url, vendor, failures, chat } = await startGateway()
  const random = dice(SEED)
  const { allowed, admitted } = await fuzz(
    url,
    () => cut(oddRequests(random), random),
    ({ malformed, wellFormed }) => malformed + wellFormed >= CUT,
  )
  // A valid request in front of a malformed one may reach the vendor without being answered.
  expect(vendor.counts.arrived).toBeLessThanOrEqual(allowed)
  expect(admitted).toBeGreaterThan(CUT / 10)
  expect(failures).toEqual([])
  expect((await chat()).status).toBe(200)
})
