import { describe, expect, it } from 'vitest'
import { fc } from '../../../spillway/test/fast-check.js'
import { AnswerReader } from './answer-reader.js'

interface Read {
  status: number
  headers: string[]
  body: string
  over: boolean
  keepAliveMs: number
}

/** What is read from these pieces, one after the other. */
function read(pieces: readonly (string | Buffer)[], { head = false, closed = false } = {}): Read {
  const got = { status: 0, headers: [] as string[] }
  const body: Buffer[] = []
  const listener = {
    onHead: (status: number, headers: string[]) => Object.assign(got, { status, headers }),
    onBody: (piece: Buffer) => void body.push(Buffer.from(piece)),
  }
  const reader = new AnswerReader(listener, head)
  for (const piece of pieces) {
    const bytes = Buffer.from(piece as string, 'latin1')
    reader.push(bytes)
    // Whoever owns the bytes uses them again.
    bytes.fill(0)
  }
  if (closed) reader.close()
  const { over, keepAliveMs } = reader
  return { ...got, body: Buffer.concat(body).toString('latin1'), over, keepAliveMs }
}

const answer = (...lines: string[]) => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`
const LENGTH_5 = `${answer('content-length: 5')}hello`
const CHUNKED = answer('Transfer-Encoding: Chunked')

describe('an answer', () => {
  it('has a status, headers in small letters, and a body as long as it says', () => {
    const text = `${answer('Content-Length: 5', 'X-Odd:  a: b \t', 'set-cookie: a', 'set-cookie: b')}hello`
    expect(read([text])).toEqual({
      status: 200,
      headers: ['content-length', '5', 'x-odd', 'a: b', 'set-cookie', 'a', 'set-cookie', 'b'],
      body: 'hello',
      over: true,
      keepAliveMs: Number.POSITIVE_INFINITY,
    })
  })

  it('may have no reason, no headers, and bytes that are no ASCII', () => {
    const text = 'HTTP/1.1 204\r\nx: \u00e9\u00ff\r\n\r\n'
    expect(read([text])).toMatchObject({ status: 204, headers: ['x', '\u00e9\u00ff'], over: true })
    expect(read(['HTTP/1.1 200 \r\n\r\n'])).toMatchObject({ status: 200, headers: [], over: false })
  })

  it('is not over before all of it has come', () => {
    expect(read([LENGTH_5.slice(0, -1)], { closed: true })).toMatchObject({ over: false })
    expect(read([`${CHUNKED}5\r\nhello\r\n`], { closed: true })).toMatchObject({ over: false })
    expect(read([`${CHUNKED}5\r\nhello\r\n0\r\n`], { closed: true })).toMatchObject({ over: false })
    expect(read(['HTTP/1.1 200 OK\r\n'], { closed: true })).toMatchObject({ over: false })
  })

  it('lasts until the connection closes, if it says nothing of its length', () => {
    const text = `${answer('content-type: text/plain')}hello`
    expect(read([text])).toMatchObject({ body: 'hello', over: false })
    expect(read([text], { closed: true })).toMatchObject({ over: true, keepAliveMs: 0 })
  })

  it('has no body if it answers a HEAD, or its status says so', () => {
    expect(read([answer('content-length: 5')], { head: true })).toMatchObject({ over: true })
    expect(read([CHUNKED], { head: true })).toMatchObject({ over: true })
    expect(read(['HTTP/1.1 304 x\r\ncontent-length: 5\r\n\r\n'])).toMatchObject({ over: true })
  })

  it('comes in chunks, with extensions and trailers that nobody reads', () => {
    const text = `${CHUNKED}5;a="b\tc"\r\nhello\r\n00A\r\n, you two.\r\n0;x\r\nx-sum: 1\r\ny: 2\r\n\r\n`
    expect(read([text])).toMatchObject({ body: 'hello, you two.', over: true })
  })

  it('may be announced by others', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n${LENGTH_5}`
    expect(read([text])).toMatchObject({ status: 200, body: 'hello', over: true })
  })

  it('says whether its connection can be used again, and for how long', () => {
    const rests = (...lines: string[]) => read([answer('content-length: 0', ...lines)]).keepAliveMs
    expect(rests()).toBe(Number.POSITIVE_INFINITY)
    expect(rests('connection: Close')).toBe(0)
    expect(rests('connection: x, close')).toBe(0)
    expect(rests('connection: close', 'connection: x')).toBe(0)
    expect(rests('connection: x-close-hint')).toBe(Number.POSITIVE_INFINITY)
    expect(rests('keep-alive: timeout=5, max=100')).toBe(5_000)
    expect(rests('keep-alive: max=100')).toBe(Number.POSITIVE_INFINITY)
    const old = (line: string) => read([`HTTP/1.0 200 OK\r\n${line}content-length: 0\r\n\r\n`])
    expect(old('').keepAliveMs).toBe(0)
    expect(old('connection: keep-alive\r\n').keepAliveMs).toBe(Number.POSITIVE_INFINITY)
  })

  it('may have a line break too many, which ends its connection', () => {
    const text = `${LENGTH_5}\r\n`
    expect(read([text])).toMatchObject({ body: 'hello', over: true, keepAliveMs: 0 })
    expect(read([`${CHUNKED}0\r\n\r\n\r\n`])).toMatchObject({ over: true, keepAliveMs: 0 })
  })

  it('is the same however the network cuts it', () => {
    const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
    const sizes = fc.array(fc.nat(80), { maxLength: 40 })
    fc.assert(
      fc.property(body, sizes, sizes, fc.boolean(), (bytes, chunks, cuts, byLength) => {
        const text = bytes.toString('latin1')
        const framed = byLength
          ? `${answer(`content-length: ${bytes.length}`)}${text}`
          : `${CHUNKED}${inChunks(text, chunks)}0\r\n\r\n`
        expect(read(cut(framed, cuts))).toMatchObject({ status: 200, body: text, over: true })
      }),
    )
  })
})

describe('what is no answer is an error:', () => {
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['another version', 'HTTP/2 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['a protocol that changes', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['a header without a colon', answer('content-length')],
    ['a header without a name', answer(': 5')],
    ['a space before the colon', answer('content-length : 5')],
    ['a header that goes on in the next line', answer('x: a', ' b')],
    ['half a line break', answer('x: a\nb: c')],
    ['the other half', answer('x: a\rb: c')],
    ['half a line break before a whole one', answer('x: a\n', 'b: c')],
    ['the other half before a whole one', answer('x: a\r', 'b: c')],
    ['half a line break behind a whole one', answer('\nx: a')],
    ['a line break the wrong way round', answer('x: a\n\rb: c')],
    ['half a line break in its first line', 'HTTP/1.1 200 O\nK\r\nx: a\r\n\r\n'],
    ['the other half in its first line', 'HTTP/1.1 200 O\rK\r\nx: a\r\n\r\n'],
    ['half a line break in its only line', 'HTTP/1.1 200 O\nK\r\n\r\n'],
    ['the other half', answer('x: a\rb')],
    ['a NUL', answer('x: a\0b')],
    ['a length that is no number', answer('content-length: 5x')],
    ['a length below nothing', answer('content-length: -5')],
    ['a length with a sign', answer('content-length: +5')],
    ['a length in two parts', answer('content-length: 5, 5')],
    ['two lengths', answer('content-length: 5', 'content-length: 5')],
    ['a length that nothing has', answer('content-length: 9999999999999999')],
    ['a length and chunks', answer('content-length: 5', 'transfer-encoding: chunked')],
    ['a coding that nobody asked for', answer('transfer-encoding: gzip, chunked')],
    ['two codings', answer('transfer-encoding: chunked', 'transfer-encoding: chunked')],
    ['a chunk without a size', `${CHUNKED}\r\nhello`],
    ['a chunk whose size is no number', `${CHUNKED}5g\r\nhello`],
    ['a chunk whose size has a sign', `${CHUNKED}-5\r\nhello`],
    ['a chunk whose size is in C', `${CHUNKED}0x5\r\nhello`],
    ['a chunk of impossible size', `${CHUNKED}fffffffffffff\r\n`],
    ['a space behind a size', `${CHUNKED}5 \r\nhello`],
    ['a chunk that is longer than it says', `${CHUNKED}4\r\nhello\r\n`],
    ['half a line break behind a size', `${CHUNKED}5\nhello\r\n`],
    ['half a line break in an extension', `${CHUNKED}5;a\nb\r\nhello\r\n`],
    ['an extension that is none', `${CHUNKED}5;=a\r\nhello\r\n`],
    ['a trailer that is none', `${CHUNKED}0\r\nhello\r\n\r\n`],
    ['a trailer with a length', `${CHUNKED}0\r\nContent-Length: 3\r\n\r\n`],
    ['half a line break in a trailer', `${CHUNKED}0\r\na: b\n\r\n`],
    ['more than it says', `${LENGTH_5}!`],
    ['another answer behind it', `${LENGTH_5}${LENGTH_5}`],
    ['something behind its chunks', `${CHUNKED}0\r\n\r\nx`],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`],
    ['extensions without end', `${CHUNKED}5;${'a'.repeat(20_000)}`],
    ['trailers without end', `${CHUNKED}0\r\n${'a: b\r\n'.repeat(5_000)}`],
  ])('%s', (_, text) => {
    expect(() => read([text])).toThrow(expect.objectContaining({ code: 'MALFORMED_ANSWER' }))
    // Nor is it one in small pieces.
    expect(() => read([...text])).toThrow(expect.objectContaining({ code: 'MALFORMED_ANSWER' }))
  })
})

/** Of these sizes, as far as they go; then the rest. */
function cut(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return [...pieces, text.slice(at)]
}

function inChunks(text: string, sizes: readonly number[]): string {
  return cut(text, sizes)
    .filter((piece) => piece !== '')
    .map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
    .join('')
}
