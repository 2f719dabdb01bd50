import { IncomingMessage, ServerResponse } from 'node:http'
import { SpillwayError } from 'spillway'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { PROTOCOLS } from '../protocols/index.js'
import type { ClientResponse } from '../request/client-http.js'
import { VendorAddresses } from '../vendor/vendor-addresses.js'
import type { VendorResponse } from '../vendor/vendor-response.js'
import { ResponseWriter } from './client-response.js'
import type { Admitted } from './decision-headers.js'
import { RequestError } from './errors.js'

const DECISION: Admitted = {
  vendor: 'openai',
  lane: 'gpt',
  attempts: 2,
  waitedMs: 0,
  step: 0,
  standing: undefined,
  shadow: undefined,
}

interface Answer {
  status?: number
  raw?: string[]
  isEventStream?: boolean
  beginning?: string
}

function setup({ draining = false } = {}) {
  const socket = new FakeSocket()
  const request = new IncomingMessage(socket.asSocket)
  Object.assign(request, { method: 'POST', httpVersionMajor: 1, httpVersionMinor: 1 })
  const response = new ServerResponse(request)
  response.sendDate = false
  // As the HTTP server of Node does.
  socket.on('drain', () => response.emit('drain'))
  response.assignSocket(socket.asSocket)
  const clock = createVirtualClock()
  const hooks = { draining, clock }
  const writer = new ResponseWriter(response as ClientResponse, 'id-1', clock.now(), hooks)
  const calls: string[] = []
  const pass = (
    { status = 200, raw = [], isEventStream = false, beginning = '' }: Answer,
    passing: Partial<Parameters<ResponseWriter['pass']>[1]> = {},
  ) => {
    const answer = {
      status,
      ok: status < 400,
      raw,
      isEventStream,
      beginning: Buffer.from(beginning),
      pipe: () => calls.push('pipe'),
      resume: () => calls.push('resume'),
      cancel: () => calls.push('cancel'),
    }
    writer.pass(answer as unknown as VendorResponse, {
      decision: DECISION,
      drop: undefined,
      final: false,
      addresses: new VendorAddresses('http://vendor'),
      ...passing,
    })
  }
  const head = () => socket.output.split('\r\n\r\n', 1)[0]!.toLowerCase().split('\r\n')
  const body = () => socket.output.slice(socket.output.indexOf('\r\n\r\n') + 4)
  return { clock, socket, response, writer, calls, pass, head, body }
}

const refusal = (code: SpillwayError['code'], status: number) =>
  new SpillwayError({
    ...{ code, status, stage: 'shed', scope: 'local', retryAfterMs: 2_000 },
    explain: () => 'too much',
  } as ConstructorParameters<typeof SpillwayError>[0])

describe('answers that are passed on', () => {
  it('a whole answer has the headers of the gateway and of the vendor, and its length', async () => {
    const { pass, writer, calls, head, body } = setup()
    pass({ status: 201, raw: ['x-vendor', 'a', 'content-length', '99', 'set-cookie', 'b'] })
    expect(calls).toEqual(['pipe'])
    writer.end(Buffer.from('hello'))
    await turns(2)
    expect(head()).toEqual([
      'http/1.1 201 created',
      'spillway-request-id: id-1',
      'spillway-decision: admitted;vendor="openai";lane="gpt";waited-ms=0',
      'spillway-vendor: openai',
      'spillway-attempts: 2',
      'spillway-degraded: ?0',
      'content-length: 5',
      'x-vendor: a',
      'connection: keep-alive',
    ])
    expect(body()).toBe('hello')
    expect(writer.firstByteMs).toBeGreaterThanOrEqual(0)
    expect(writer.error).toBeUndefined()
  })

  it('an answer of more than 16 KiB and one in pieces arrive whole', async () => {
    const large = setup()
    large.pass({})
    large.writer.end(Buffer.alloc(20_000, 'x'))
    await turns(2)
    expect(large.body()).toBe('x'.repeat(20_000))
    const pieces = setup()
    pieces.pass({ raw: ['content-length', '6'] })
    pieces.writer.write(Buffer.from('abc'))
    pieces.writer.write(Buffer.from('de'))
    pieces.writer.end(Buffer.from('f'))
    await turns(2)
    expect(pieces.head()).toContain('content-length: 6')
    expect(pieces.body()).toBe('abcdef')
  })

  it.each([204, 304])('an answer with status %i has no length', async (status) => {
    const { pass, writer, head, body } = setup()
    pass({ status, raw: ['content-length', '5'] })
    writer.end(undefined)
    await turns(2)
    expect(head().filter((line) => line.startsWith('content-length'))).toEqual([])
    expect(body()).toBe('')
  })

  it('an answer to HEAD keeps the length of the vendor', async () => {
    const { pass, writer, head } = setup()
    pass({ raw: ['content-length', '5'] })
    writer.end(undefined)
    await turns(2)
    expect(head()).toContain('content-length: 5')
  })

  it('while the gateway drains, the connection is closed after the answer', async () => {
    const { pass, writer, head } = setup({ draining: true })
    pass({})
    writer.end(Buffer.from('x'))
    await turns(2)
    expect(head()).toContain('connection: close')
  })

  it('a final answer has x-should-retry: false, even if the vendor sends true', async () => {
    const { pass, writer, head } = setup()
    pass({ raw: ['x-should-retry', 'true'] }, { final: true })
    writer.end(Buffer.from('x'))
    await turns(2)
    expect(head().filter((line) => line.startsWith('x-should-retry'))).toEqual([
      'x-should-retry: false',
    ])
    const other = setup()
    other.pass({ raw: ['x-should-retry', 'true'] })
    other.writer.end(Buffer.from('x'))
    await turns(2)
    expect(other.head()).toContain('x-should-retry: true')
  })

  it('rate limit headers of the vendor are replaced where the gateway has its own', async () => {
    const standing = { level: 'user', limit: 9, windowMs: 60_000, remaining: 8, resetMs: 1_000 }
    const rateLimits = async (decision: Admitted) => {
      const { pass, writer, head } = setup()
      pass({ raw: ['ratelimit', 'vendor'] }, { decision })
      writer.end(Buffer.from('x'))
      await turns(2)
      return head().filter((line) => line.startsWith('ratelimit'))
    }
    expect(await rateLimits(DECISION)).toEqual(['ratelimit: vendor'])
    expect(await rateLimits({ ...DECISION, standing } as Admitted)).toEqual([
      'ratelimit-policy: "user";q=9;w=60',
      'ratelimit: "user";r=8;t=1',
    ])
  })

  it('a client that reads slowly stops the vendor until it has read', async () => {
    const { socket, pass, writer, calls } = setup()
    pass({})
    socket.held = []
    expect(writer.write(Buffer.alloc(100_000))).toBe(false)
    expect(writer.write(Buffer.alloc(10))).toBe(false)
    await turns(2)
    expect(calls).toEqual(['pipe'])
    const held = socket.held
    socket.held = undefined
    for (const leave of held) leave()
    await turns(3)
    expect(calls).toEqual(['pipe', 'resume'])
  })
})

describe('event streams that are passed on', () => {
  const EVENT = 'data: {"choices":[{"delta":{}}]}\n\n'

  it('whole events pass without a length, and events the client did not ask for are dropped', async () => {
    const { pass, writer, body, head } = setup()
    pass(
      { isEventStream: true, raw: ['content-type', 'text/event-stream', 'content-length', '9'] },
      { drop: (event) => event.includes('usage') },
    )
    expect(writer.write(Buffer.from('data: 1'))).toBe(true)
    expect(writer.firstByteMs).toBeUndefined()
    writer.write(Buffer.from('\n\ndata: usage\n\ndata: 2\n\ndat'))
    writer.end(Buffer.from('a: 3'))
    await turns(2)
    expect(head().filter((line) => line.startsWith('content-length'))).toEqual([])
    expect(body().replace(/\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, '')).toContain(
      'data: 1\n\ndata: 2\n\n',
    )
    expect(body()).toContain('data: 3')
    expect(body()).not.toContain('usage')
  })

  it('a stream is judged by its last event, unless it is an error', () => {
    const open = (answer: Answer, protocol: keyof typeof PROTOCOLS = 'openai') => {
      const { pass, writer } = setup()
      writer.useProtocol(PROTOCOLS[protocol], '/v1/chat/completions')
      pass(answer)
      writer.write(Buffer.from(EVENT))
      return [writer.judgesEnd, (writer.faultAtEnd() as { code?: string } | undefined)?.code]
    }
    expect(open({ isEventStream: true })).toEqual([true, 'STREAM_CUT_OFF'])
    expect(open({ isEventStream: true, status: 500 })).toEqual([false, undefined])
    expect(open({ isEventStream: true }, 'http')).toEqual([false, undefined])
    expect(open({})).toEqual([false, undefined])
  })

  it('a stream of another HTTP service that breaks ends with an error event and a cut connection', async () => {
    const { socket, pass, writer, body } = setup()
    writer.useProtocol(PROTOCOLS.http, '/events')
    pass({ isEventStream: true })
    writer.write(Buffer.from(EVENT))
    writer.broken(new Error('reset'))
    await turns(3)
    expect(body()).toContain('event: error')
    expect(body().endsWith('0\r\n\r\n')).toBe(false)
    expect(socket.destroyed).toBe(true)
  })

  it.each(['openai', 'anthropic'] as const)(
    'a stream of %s that breaks ends with an error event and as HTTP demands',
    async (name) => {
      const { socket, pass, writer, body, clock } = setup()
      writer.useProtocol(PROTOCOLS[name], '/v1/messages')
      pass({ isEventStream: true })
      writer.write(Buffer.from(EVENT))
      writer.broken(new Error('reset'))
      await turns(3)
      expect(body()).toContain('"error":{')
      expect(body()).not.toMatch(/\[DONE\]|message_stop/)
      expect(body().endsWith('0\r\n\r\n')).toBe(true)
      await clock.advance(60_000)
      expect(socket.destroyed).toBe(false)
    },
  )

  it('the error event of a response has the next number of its stream', async () => {
    const { pass, writer, body } = setup()
    writer.useProtocol(PROTOCOLS.openai, '/v1/responses')
    pass({ isEventStream: true })
    writer.write(Buffer.from('data: {"type":"response.created","sequence_number":6}\n\n'))
    writer.broken(new Error('reset'))
    await turns(3)
    expect(body()).toMatch(/event: error\ndata: {"type":"error","sequence_number":7,"code":"/)
  })

  it('the error of a stream that breaks names the vendor and the reason', async () => {
    const { pass, writer, body } = setup()
    pass({ isEventStream: true })
    writer.write(Buffer.from(EVENT))
    const error = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    writer.broken(error)
    await turns(3)
    expect(body()).toContain('"code":"VENDOR_ERROR"')
    expect(body()).toContain('openai could not be reached or ended its answer early: ECONNRESET')
    expect(writer.error).toBe(error)
  })

  it('an answer that is no stream breaks off without an error event', async () => {
    const { socket, pass, writer, body } = setup()
    pass({})
    writer.write(Buffer.from('part'))
    writer.broken(new Error('reset'))
    await turns(3)
    expect(body()).not.toContain('VENDOR_ERROR')
    expect(socket.destroyed).toBe(true)
  })

  it('an answer that breaks before its first byte becomes a 502', async () => {
    const { pass, writer, head, body } = setup()
    pass({})
    writer.broken(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    await turns(2)
    expect(head()).toEqual(
      expect.arrayContaining([
        'http/1.1 502 bad gateway',
        'spillway-vendor: openai',
        'spillway-attempts: 2',
        'x-should-retry: false',
      ]),
    )
    expect(JSON.parse(body())).toMatchObject({ error: { code: 'VENDOR_ERROR' } })
  })

  it('a client that does not read the end of a broken stream is cut off after 5 seconds', async () => {
    const { clock, socket, pass, writer } = setup()
    pass({ isEventStream: true })
    socket.held = []
    writer.write(Buffer.from(EVENT))
    writer.broken(new Error('reset'))
    await clock.advance(4_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })
})

describe('comments while a stream has not begun', () => {
  it('comments are sent at the interval until the answer begins', async () => {
    const { clock, pass, writer, head, body } = setup()
    writer.keepAlive(1_000)
    await clock.advance(2_500)
    await turns()
    expect(head()).toEqual(
      expect.arrayContaining(['http/1.1 200 ok', 'content-type: text/event-stream']),
    )
    pass({ isEventStream: true })
    await clock.advance(5_000)
    writer.end(Buffer.from('data: 1\n\n'))
    await turns(2)
    expect(body().match(/: waiting/g)).toHaveLength(2)
    expect(body()).toContain('data: 1\n\n')
  })

  it('an answer that is no stream ends a promised stream with an error event', async () => {
    const { clock, pass, writer, calls, body } = setup()
    writer.keepAlive(1_000)
    await clock.advance(1_000)
    pass({ status: 429, beginning: `slow down${'x'.repeat(5_000)}` })
    await turns(3)
    expect(calls).toEqual(['cancel'])
    expect(body()).toContain('the vendor answered with status 429: slow down')
    expect(body().length).toBeLessThan(3_000)
    expect(writer.error).toMatchObject({ status: 429, code: 'VENDOR_ERROR' })
    expect(body().endsWith('0\r\n\r\n')).toBe(true)
  })

  it('a successful answer that is no stream counts as 502 in a promised stream', async () => {
    const { clock, pass, writer } = setup()
    writer.keepAlive(1_000)
    await clock.advance(1_000)
    pass({ status: 200 })
    expect(writer.error).toMatchObject({ status: 502 })
  })

  it.each(['close', 'abandon'] as const)('no comment is sent after %s()', async (end) => {
    const { clock, socket, response, writer } = setup()
    writer.keepAlive(1_000)
    writer[end]()
    await clock.advance(5_000)
    expect(socket.output).toBe('')
    expect(response.destroyed).toBe(end === 'abandon')
  })
})

describe('refusals', () => {
  it('a refusal of Spillway has its status, headers and body in the format of the protocol', async () => {
    const { writer, head, body } = setup()
    writer.useProtocol(PROTOCOLS.anthropic, '/v1/messages')
    const error = refusal('SHED', 503)
    writer.refuse(error, error, 0, undefined)
    await turns(2)
    expect(head()).toEqual(
      expect.arrayContaining([
        'http/1.1 503 service unavailable',
        'spillway-request-id: id-1',
        'spillway-decision: refused;stage=shed;reason=shed;scope=local',
        'spillway-attempts: 0',
        'retry-after: 2',
        'x-request-id: id-1',
        'content-type: application/json',
      ]),
    )
    expect(head().join()).not.toMatch(/x-should-retry|spillway-vendor|connection: close/)
    expect(JSON.parse(body())).toMatchObject({ type: 'error', request_id: 'id-1' })
    expect(head()).toContain(`content-length: ${Buffer.byteLength(body())}`)
    expect(writer.error).toBe(error)
  })

  it('a refusal of the request names its code and closes the connection if it must', async () => {
    const { writer, head } = setup()
    const error = new RequestError({ status: 413, code: 'BIG', message: 'é', closes: true })
    writer.refuse(error, error, 1, 'openai')
    await turns(2)
    expect(head()).toEqual(
      expect.arrayContaining([
        'spillway-decision: refused;reason=big',
        'spillway-attempts: 1',
        'spillway-vendor: openai',
        'x-should-retry: false',
        'connection: close',
      ]),
    )
  })

  it('a refusal after the head has been sent ends the stream with an error event', async () => {
    const { pass, writer, body } = setup()
    pass({ isEventStream: true })
    writer.write(Buffer.from('data: 1\n\n'))
    const error = refusal('SHED', 503)
    writer.refuse(error, error, 1, undefined)
    await turns(3)
    expect(body()).toContain('"code":"SHED"')
    expect(body()).toContain('"retry_after_ms":2000')
    expect(body().endsWith('0\r\n\r\n')).toBe(true)
  })

  it('nothing is written to a client that has left', async () => {
    const { socket, response, writer } = setup()
    response.destroy()
    const error = refusal('SHED', 503)
    writer.refuse(error, error, 1, undefined)
    writer.sendOwnAnswer({ status: 200, headers: {}, body: 'x' })
    writer.broken(error)
    await turns(2)
    expect(socket.output).toBe('')
  })
})

describe('answers of the gateway itself', () => {
  it('an answer has its status, headers, length in bytes and body', async () => {
    const { writer, head, body } = setup({ draining: true })
    writer.sendOwnAnswer({ status: 202, headers: { location: '/jobs/1' }, body: 'é' })
    await turns(2)
    expect(head()).toEqual(
      expect.arrayContaining([
        'http/1.1 202 accepted',
        'spillway-request-id: id-1',
        'location: /jobs/1',
        'content-length: 2',
        'connection: close',
      ]),
    )
    expect(body()).toBe('\xc3\xa9')
    expect(writer.firstByteMs).toBeGreaterThanOrEqual(0)
  })

  it('an answer with status 204 has neither length nor body', async () => {
    const { writer, head, body } = setup()
    writer.sendOwnAnswer({ status: 204, headers: {}, body: 'x' })
    await turns(2)
    expect(head().join()).not.toContain('content-length')
    expect(body()).toBe('')
  })
})
