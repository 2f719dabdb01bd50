// test-group: sockets, slow

/** Thousands of malformed requests: none crashes the gateway, hangs or reaches a vendor. */
import { connect } from 'node:http2'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { HTTP1_LISTENERS, type Listener, startOn } from './listener-kit.js'
import { dice, mutate } from './mutate.js'
import { cut, oddRequests } from './odd-requests.js'
import { countRequests } from './oracle.js'
import { connectTo, exchangeRaw } from './raw.js'
import { TRICKS, VALID, VALID_CHUNKED } from './tricks.js'

const MALFORMED = usualOrLong(1_000, 50_000)
/** Requests with odd details, cut anywhere and surrounded by valid ones. */
const CUT = usualOrLong(300, 30_000)
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
      const { statuses, text, closed } = await exchangeRaw(url, pieces, { endAfter: allowed })
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

/** A TLS handshake costs more than ten requests. */
function casesOn(listener: Listener, cases: number): number {
  return listener.endsWith('over TLS') ? usualOrLong(Math.ceil(cases / 2), cases) : cases
}

it.each(HTTP1_LISTENERS)(
  'on %s a malformed request never crashes the gateway, hangs, goes unlogged or reaches a vendor',
  async (listener) => {
    const { url, vendor, records, failures } = await startOn(listener)
    const random = dice(SEED)
    const most = casesOn(listener, MALFORMED)
    const { malformed, wellFormed, answers, admitted, silent } = await fuzz(
      url,
      () => [Buffer.from(mutate(random.below(2) === 0 ? GOOD : TRICKY, random), 'latin1')],
      (counts) => counts.malformed >= most,
    )
    expect(vendor.counts.arrived).toBe(admitted)
    expect(failures).toEqual([])
    // Makes sure that both kinds are covered.
    expect(malformed).toBeGreaterThanOrEqual(most)
    expect(wellFormed).toBeGreaterThan(most / 40)
    expect(admitted).toBeGreaterThan(most / 90)
    // Only input that cannot be answered gets no answer; everything else is answered and logged.
    expect(silent).toBeLessThan(malformed / 20)
    expect(records.length).toBeGreaterThan(answers * 0.9)
    expect((await exchangeRaw(url, VALID, { endAfter: 1 })).statuses).toEqual([200])
  },
)

it.each(HTTP1_LISTENERS)(
  'on %s a malformed request that is cut anywhere never crashes the gateway, hangs or reaches a vendor',
  async (listener) => {
    const { url, vendor, failures } = await startOn(listener)
    const random = dice(SEED)
    const most = casesOn(listener, CUT)
    const { allowed, admitted } = await fuzz(
      url,
      () => cut(oddRequests(random), random),
      ({ malformed, wellFormed }) => malformed + wellFormed >= most,
    )
    // A valid request in front of a malformed one may reach the vendor without being answered.
    expect(vendor.counts.arrived).toBeLessThanOrEqual(allowed)
    expect(admitted).toBeGreaterThan(most / 10)
    expect(failures).toEqual([])
    expect((await exchangeRaw(url, VALID, { endAfter: 1 })).statuses).toEqual([200])
  },
)

/** The bytes that an HTTP/2 client sends for a chat request. */
async function http2Bytes(): Promise<Buffer> {
  const chunks: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    // Empty settings, and those of the client acknowledged.
    socket.write(Buffer.from('000000040000000000' + '000000040100000000', 'hex'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  const body = '{"model":"gpt","messages":[]}'
  const stream = session.request({
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    'content-type': 'application/json',
    'content-length': body.length,
  })
  stream.on('error', () => {})
  stream.end(body)
  while (!Buffer.concat(chunks).includes(body)) await new Promise(setImmediate)
  session.destroy()
  server.close()
  return Buffer.concat(chunks)
}

const PREFACE_BYTES = 24

/** Flips, cuts, repeats or inserts bytes behind the preface, or in it now and then. */
function mutateBytes(bytes: Buffer, { below, pick }: ReturnType<typeof dice>): Buffer {
  let mutated = Buffer.from(bytes)
  for (let edits = 1 + below(4); edits > 0; edits--) {
    const from = below(20) === 0 ? 0 : PREFACE_BYTES
    const at = from + below(Math.max(1, mutated.length - from))
    const other = Buffer.from([below(256)])
    const rest = mutated.subarray(at + 1)
    mutated = pick([
      () => Buffer.concat([mutated.subarray(0, at), other, rest]),
      () => Buffer.concat([mutated.subarray(0, at), rest]),
      () => Buffer.concat([mutated.subarray(0, at), other, mutated.subarray(at)]),
      () => Buffer.concat([mutated.subarray(0, at), mutated.subarray(PREFACE_BYTES)]),
      () => mutated.subarray(0, at),
    ])()
  }
  return mutated
}

it('malformed frames on HTTP/2 over TLS never crash the gateway, hang or reach a vendor twice', async () => {
  const { url, vendor, failures } = await startOn('HTTP/2 over TLS')
  const random = dice(SEED)
  const valid = await http2Bytes()
  const most = casesOn('HTTP/2 over TLS', MALFORMED)
  let sent = 0
  const work = async () => {
    while (sent < most) {
      sent++
      const { closed } = await exchangeRaw(url, mutateBytes(valid, random), {
        endAfter: 0,
        alpn: 'h2',
      })
      expect(closed).toBe(true)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  expect(vendor.counts.arrived).toBeLessThanOrEqual(sent)
  expect(failures).toEqual([])
  // An unchanged request is still answered.
  const socket = connectTo(url, undefined, ['h2'])
  const before = vendor.counts.arrived
  socket.write(valid)
  while (vendor.counts.arrived === before) await new Promise((resolve) => setTimeout(resolve, 5))
  socket.destroy()
})
