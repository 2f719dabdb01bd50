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

/** Reads these pieces one after the other and returns the result. */
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
    // The socket reuses its buffer, so the reader must not keep these bytes.
    bytes.fill(0)
  }
  if (closed) reader.close()
  const { over, keepAliveMs } = reader
  return { ...got, body: Buffer.concat(body).toString('latin1'), over, keepAliveMs }
}

const answer = (...lines: string[]) => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`
const LENGTH_5 = `${answer('content-length: 5')}hello`
const CHUNKED = answer('Transfer-Encoding: Chunked')

describe('AnswerReader', () => {
  it('an answer is read with its status, lower-case header names and a body of its Content-Length', () => {
    const text = `${answer('Content-Length: 5', 'X-Odd:  a: b \t', 'set-cookie: a', 'set-cookie: b')}hello`
    expect(read([text])).toEqual({
      status: 200,
      headers: ['content-length', '5', 'x-odd', 'a: b', 'set-cookie', 'a', 'set-cookie', 'b'],
      body: 'hello',
      over: true,
      keepAliveMs: Number.POSITIVE_INFINITY,
    })
  })

  it('an answer may have no reason phrase, no headers and non-ASCII header values', () => {
    const text = 'HTTP/1.1 204\r\nx: \u00e9\u00ff\r\n\r\n'
    expect(read([text])).toMatchObject({ status: 204, headers: ['x', '\u00e9\u00ff'], over: true })
    expect(read(['HTTP/1.1 200 \r\n\r\n'])).toMatchObject({ status: 200, headers: [], over: false })
  })

  it('an answer is incomplete until all of its bytes have arrived', () => {
    expect(read([LENGTH_5.slice(0, -1)], { closed: true })).toMatchObject({ over: false })
    expect(read([`${CHUNKED}5\r\nhello\r\n`], { closed: true })).toMatchObject({ over: false })
    expect(read([`${CHUNKED}5\r\nhello\r\n0\r\n`], { closed: true })).toMatchObject({ over: false })
    expect(read(['HTTP/1.1 200 OK\r\n'], { closed: true })).toMatchObject({ over: false })
  })

  it('an answer without a length ends when its connection closes', () => {
    const text = `${answer('content-type: text/plain')}hello`
    expect(read([text])).toMatchObject({ body: 'hello', over: false })
    expect(read([text], { closed: true })).toMatchObject({ over: true, keepAliveMs: 0 })
  })

  it('an answer to HEAD or with status 304 has no body', () => {
    expect(read([answer('content-length: 5')], { head: true })).toMatchObject({ over: true })
    expect(read([CHUNKED], { head: true })).toMatchObject({ over: true })
    expect(read(['HTTP/1.1 304 x\r\ncontent-length: 5\r\n\r\n'])).toMatchObject({ over: true })
  })

  it('a chunked answer is read, and its chunk extensions and trailers are ignored', () => {
    const text = `${CHUNKED}5;a="b\tc"\r\nhello\r\n00A\r\n, you two.\r\n0;x\r\nx-sum: 1\r\ny: 2\r\n\r\n`
    expect(read([text])).toMatchObject({ body: 'hello, you two.', over: true })
  })

  it('informational answers before the final answer are skipped', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n${LENGTH_5}`
    expect(read([text])).toMatchObject({ status: 200, body: 'hello', over: true })
  })

  it('an answer states whether and for how long its connection can be reused', () => {
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

  it('an extra line break after an answer is accepted and ends its connection', () => {
    const text = `${LENGTH_5}\r\n`
    expect(read([text])).toMatchObject({ body: 'hello', over: true, keepAliveMs: 0 })
    expect(read([`${CHUNKED}0\r\n\r\n\r\n`])).toMatchObject({ over: true, keepAliveMs: 0 })
  })

  it('an answer is read the same however the network splits it', () => {
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

describe('malformed answers', () => {
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['another version', 'HTTP/2 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['a header without a colon', answer('content-length')],
    ['a header without a name', answer(': 5')],
    ['a space before the colon', answer('content-length : 5')],
    ['a header continued on the next line', answer('x: a', ' b')],
    ['a lone line feed', answer('x: a\nb: c')],
    ['a lone carriage return', answer('x: a\rb: c')],
    ['a line feed before a line break', answer('x: a\n', 'b: c')],
    ['a carriage return before a line break', answer('x: a\r', 'b: c')],
    ['a line feed after a line break', answer('\nx: a')],
    ['a reversed line break', answer('x: a\n\rb: c')],
    ['a lone line feed in its status line', 'HTTP/1.1 200 O\nK\r\nx: a\r\n\r\n'],
    ['a lone carriage return in its status line', 'HTTP/1.1 200 O\rK\r\nx: a\r\n\r\n'],
    ['a lone line feed in its status line and no headers', 'HTTP/1.1 200 O\nK\r\n\r\n'],
    ['a lone carriage return in a value', answer('x: a\rb')],
    ['a NUL', answer('x: a\0b')],
    ['a length that is not a number', answer('content-length: 5x')],
    ['a negative length', answer('content-length: -5')],
    ['a length with a plus sign', answer('content-length: +5')],
    ['a length in two parts', answer('content-length: 5, 5')],
    ['two lengths', answer('content-length: 5', 'content-length: 5')],
    ['an impossibly large length', answer('content-length: 9999999999999999')],
    ['a length and chunks', answer('content-length: 5', 'transfer-encoding: chunked')],
    ['an unknown transfer coding', answer('transfer-encoding: gzip, chunked')],
    ['two transfer codings', answer('transfer-encoding: chunked', 'transfer-encoding: chunked')],
    ['a chunk without a size', `${CHUNKED}\r\nhello`],
    ['a chunk whose size is not a number', `${CHUNKED}5g\r\nhello`],
    ['a chunk whose size has a sign', `${CHUNKED}-5\r\nhello`],
    ['a chunk whose size has the prefix 0x', `${CHUNKED}0x5\r\nhello`],
    ['a chunk of impossible size', `${CHUNKED}fffffffffffff\r\n`],
    ['a space after a chunk size', `${CHUNKED}5 \r\nhello`],
    ['a chunk that is longer than its size', `${CHUNKED}4\r\nhello\r\n`],
    ['a lone line feed after a chunk size', `${CHUNKED}5\nhello\r\n`],
    ['a lone line feed in a chunk extension', `${CHUNKED}5;a\nb\r\nhello\r\n`],
    ['an invalid chunk extension', `${CHUNKED}5;=a\r\nhello\r\n`],
    ['an invalid trailer', `${CHUNKED}0\r\nhello\r\n\r\n`],
    ['a trailer with a length', `${CHUNKED}0\r\nContent-Length: 3\r\n\r\n`],
    ['a lone line feed in a trailer', `${CHUNKED}0\r\na: b\n\r\n`],
    ['more bytes than its length', `${LENGTH_5}!`],
    ['another answer after it', `${LENGTH_5}${LENGTH_5}`],
    ['bytes after its last chunk', `${CHUNKED}0\r\n\r\nx`],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`],
    ['extensions without end', `${CHUNKED}5;${'a'.repeat(20_000)}`],
    ['trailers without end', `${CHUNKED}0\r\n${'a: b\r\n'.repeat(5_000)}`],
  ])('an answer is rejected as malformed if it has %s', (_, text) => {
    expect(() => read([text])).toThrow(expect.objectContaining({ code: 'MALFORMED_ANSWER' }))
    // The result does not depend on how the bytes are split.
    expect(() => read([...text])).toThrow(expect.objectContaining({ code: 'MALFORMED_ANSWER' }))
  })
})

/** Splits a text into pieces of these sizes, followed by the rest. */
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
