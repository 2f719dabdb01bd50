import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { HungUpError, holdDecoded, holdOrStream, type StreamedBody } from './body.js'
import { decoderFor } from './content-type.js'

/** A request whose body arrives when the test writes it. */
const open = () => new PassThrough() as PassThrough & IncomingMessage

/** A request whose body arrives in these chunks. */
const sending = (...chunks: (string | Buffer)[]) =>
  Readable.from(chunks.map((chunk) => Buffer.from(chunk))) as Readable & IncomingMessage

const turn = () => new Promise(setImmediate)
const LISTENED = ['data', 'end', 'close', 'error']
const listeners = (request: IncomingMessage) =>
  LISTENED.map(
    (event) => request.listeners(event).filter((each) => /^on[A-Z]/.test(each.name)).length,
  )

const hold = (request: IncomingMessage, limits: { keepBytes: number; maxBytes: number }) =>
  holdOrStream(request, limits, () => {})

const holdBytes = (
  request: IncomingMessage,
  decoder: ReturnType<typeof decoderFor>,
  limits: { maxBytes: number },
  onChunk: (chunk: Buffer) => void,
) => holdDecoded(request, decoder, limits, onChunk, (bytes) => bytes)

async function collect(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts).toString()
}

describe('body that is held or streamed', () => {
  it('a body up to keepBytes is held', async () => {
    const body = await hold(sending('1234', '5'), { keepBytes: 5, maxBytes: 9 })
    expect(body.kind === 'held' && body.bytes.toBuffer().toString()).toBe('12345')
  })

  it('a body over keepBytes is streamed, with all of its bytes in order', async () => {
    const request = sending('1234', '56', '789')
    const body = (await hold(request, { keepBytes: 5, maxBytes: 9 })) as StreamedBody
    expect([body.kind, request.readableFlowing]).toEqual(['streamed', false])
    expect(listeners(request)).toEqual([0, 0, 0, 0])
    expect(await collect(body.chunks)).toBe('123456789')
  })

  it('a body over maxBytes is refused as 413, held or streamed', async () => {
    const refusal = { status: 413, code: 'BODY_TOO_LARGE', closes: true }
    const held = sending('1234567', '890')
    await expect(hold(held, { keepBytes: 9, maxBytes: 9 })).rejects.toMatchObject(refusal)
    const faults: unknown[] = []
    const body = (await holdOrStream(
      sending('123456', '7890'),
      { keepBytes: 5, maxBytes: 9 },
      (error) => faults.push(error),
    )) as StreamedBody
    await expect(collect(body.chunks)).rejects.toMatchObject(refusal)
    expect(faults).toMatchObject([refusal])
    expect(body.progress.complete).toBe(false)
  })

  it('the progress of a streamed body shows whether it has begun, waits and is complete', async () => {
    const request = open()
    const held = hold(request, { keepBytes: 2, maxBytes: 99 })
    request.write('head')
    const { chunks, progress } = (await held) as StreamedBody
    expect(progress).toEqual({ begun: false, waiting: false, complete: false })
    const reader = chunks[Symbol.asyncIterator]()
    expect((await reader.next()).value.toString()).toBe('head')
    expect(progress).toEqual({ begun: true, waiting: false, complete: false })
    const next = reader.next()
    await turn()
    expect(progress).toEqual({ begun: true, waiting: true, complete: false })
    request.write('more')
    expect((await next).value.toString()).toBe('more')
    expect(progress).toEqual({ begun: true, waiting: false, complete: false })
    request.end()
    expect((await reader.next()).done).toBe(true)
    expect(progress).toEqual({ begun: true, waiting: false, complete: true })
  })

  it('a client that disconnects before the end is a HungUpError and leaves no listener', async () => {
    for (const leave of [
      (request: PassThrough) => request.destroy(),
      (request: PassThrough) => request.destroy(new Error('reset')),
    ]) {
      const request = open()
      const held = hold(request, { keepBytes: 9, maxBytes: 9 })
      request.write('1')
      await turn()
      leave(request.on('error', () => {}))
      await expect(held).rejects.toBeInstanceOf(HungUpError)
      expect(listeners(request)).toEqual([0, 0, 0, 0])
    }
  })

  it('a client that disconnects while its body is streamed is reported as a fault', async () => {
    const request = open()
    const faults: unknown[] = []
    const held = holdOrStream(request, { keepBytes: 2, maxBytes: 99 }, (error) =>
      faults.push(error),
    )
    request.write('head')
    const { chunks, progress } = (await held) as StreamedBody
    const read = collect(chunks)
    read.catch(() => {})
    await turn()
    request.destroy()
    await expect(read).rejects.toThrow()
    expect([faults.length, progress.complete]).toEqual([1, false])
  })
})

describe('body that is read', () => {
  const text = JSON.stringify({ model: 'gpt', prompt: 'x'.repeat(500) })

  async function decoded(encoding: string | undefined, chunks: Buffer[], maxBytes = 10_000) {
    const seen: Buffer[] = []
    const request = sending(...chunks)
    const bytes = await holdBytes(
      request,
      decoderFor(encoding),
      { maxBytes: maxBytes },
      (chunk) => {
        seen.push(Buffer.from(chunk))
      },
    )
    expect(Buffer.concat(seen).equals(bytes.toBuffer())).toBe(true)
    return bytes.toBuffer().toString()
  }

  it.each([
    [undefined, (plain: string) => Buffer.from(plain)],
    ['identity', (plain: string) => Buffer.from(plain)],
    [' GZIP ', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('a body with content-encoding %s is decoded', async (encoding, encode) => {
    const bytes = encode(text)
    expect(await decoded(encoding, [bytes.subarray(0, 9), bytes.subarray(9)])).toBe(text)
  })

  it.each(['gzip, br', 'zstd', 'compress'])('content-encoding %s is refused as 415', (encoding) => {
    const refusal = { status: 415, code: 'UNSUPPORTED_ENCODING' }
    expect(() => decoderFor(encoding)).toThrow(expect.objectContaining(refusal))
  })

  it('a body that does not match its content-encoding, or ends early, is refused as 400', async () => {
    const refusal = { status: 400, code: 'INVALID_BODY' }
    await expect(decoded('gzip', [Buffer.from('not gzip')])).rejects.toMatchObject(refusal)
    const cut = gzipSync(text).subarray(0, -9)
    await expect(decoded('gzip', [cut])).rejects.toMatchObject(refusal)
  })

  it('a body that cannot be decoded is refused as 400 after the rest of it was received', async () => {
    const request = open()
    const held = holdBytes(request, decoderFor('gzip'), { maxBytes: 999 }, () => {})
    held instanceof Promise && held.catch(() => {})
    request.write('not gzip')
    await turn()
    await turn()
    request.end('rest')
    await expect(held).rejects.toMatchObject({ status: 400, code: 'INVALID_BODY' })
    expect(request.readableEnded).toBe(true)
  })

  it('a compressed body may be as long as maxBytes', async () => {
    const bytes = gzipSync('x', { level: 0 })
    expect(await decoded('gzip', [bytes], bytes.length)).toBe('x')
    const body = await hold(sending('12345'), { keepBytes: 5, maxBytes: 5 })
    expect(body.kind).toBe('held')
  })

  it('maxBytes applies to the body as sent and as decoded', async () => {
    const refusal = { status: 413, code: 'BODY_TOO_LARGE', closes: true }
    const plain = Buffer.from(text)
    expect(await decoded(undefined, [plain], text.length)).toBe(text)
    expect(await decoded('gzip', [gzipSync(text)], text.length)).toBe(text)
    const less = text.length - 1
    await expect(decoded(undefined, [plain], less)).rejects.toMatchObject(refusal)
    await expect(decoded('gzip', [gzipSync(text)], less)).rejects.toMatchObject(refusal)
    const small = gzipSync('x', { level: 0 })
    await expect(decoded('gzip', [small], small.length - 1)).rejects.toMatchObject(refusal)
  })

  it('a compressed body may grow a hundred times, or to 64 KiB', async () => {
    const maxBytes = 10_000_000
    const grows = { status: 413, message: expect.stringContaining('grows more than 100 times') }
    const zeros = (bytes: number) => [gzipSync(Buffer.alloc(bytes))]
    expect((await decoded('gzip', zeros(65_536), maxBytes)).length).toBe(65_536)
    await expect(decoded('gzip', zeros(1_000_000), maxBytes)).rejects.toMatchObject(grows)
    // Half of it is incompressible, so it does not even double.
    const mixed = Buffer.concat([Buffer.alloc(100_000), gzipSync(Buffer.from(text.repeat(9)))])
    expect(
      (await decoded('gzip', [gzipSync(mixed, { level: 0 })], maxBytes)).length,
    ).toBeGreaterThan(100_000)
  })

  it('after a rejected chunk the rest of the body is received and dropped', async () => {
    let chunks = 0
    const request = sending('bad', 'rest', 'end')
    const held = holdBytes(request, undefined, { maxBytes: 99 }, () => {
      chunks++
      throw new Error('not JSON')
    })
    await expect(held).rejects.toThrow('not JSON')
    expect([chunks, request.readableEnded]).toEqual([1, true])
  })

  it('after a rejected chunk maxBytes still applies to the rest', async () => {
    const held = holdBytes(sending('bad', 'x'.repeat(99)), undefined, { maxBytes: 99 }, () => {
      throw new Error('not JSON')
    })
    await expect(held).rejects.toMatchObject({ status: 413 })
  })

  it('a client that disconnects while its compressed body arrives is a HungUpError', async () => {
    const request = open()
    const decoder = decoderFor('gzip')
    const held = holdBytes(request, decoder, { maxBytes: 999 }, () => {})
    request.write(gzipSync(text).subarray(0, 20))
    await turn()
    request.destroy()
    await expect(held).rejects.toBeInstanceOf(HungUpError)
    expect(decoder?.destroyed).toBe(true)
  })
})
