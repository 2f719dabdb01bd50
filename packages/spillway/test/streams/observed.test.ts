/** A watched response wraps the vendor's: everything that can be done with a response still works and is seen. */
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { GuardOptions } from 'spillway'
import { describe, expect, it } from 'vitest'
import { codeOf, endsOf, errorOf, pauseMs, readAll, startGuard, until } from './stream-kit.js'

const TEXT = '{"all":"of it"}'
const PIECES = ['{"all"', ':"of', ' it"}']
const bytes = (text: string) => new TextEncoder().encode(text)

/** A byte stream as fetch returns, one chunk at a time. */
function source({ waitMs = 0, stalls = false } = {}): ReadableStream<Uint8Array> {
  const left = PIECES.map(bytes)
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      if (waitMs > 0) await pauseMs(waitMs)
      const piece = left.shift()
      if (piece !== undefined) return controller.enqueue(piece)
      if (stalls) return new Promise(() => {})
      controller.close()
      controller.byobRequest?.respond(0)
    },
  })
}

function start(body: ReadableStream<Uint8Array>, options: GuardOptions = {}, headers = {}) {
  const answer = new Response(body, { headers })
  const guard = startGuard({
    concurrency: { limit: 1 },
    ...options,
    fetch: { fetch: async () => answer },
  })
  return { guard, answer, ask: () => guard.fetch('http://vendor.test/') }
}

const bodyOf = ({ body }: Response) => body as ReadableStream<Uint8Array>

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const { chunks, error } = await readAll(stream)
  if (error !== undefined) throw error
  return Buffer.concat(chunks).toString()
}

/** Reads with a plain loop. */
async function readByHand(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value)
  }
  return Buffer.concat(chunks).toString()
}

async function readInto(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader({ mode: 'byob' })
  let text = ''
  let view = new Uint8Array(4)
  while (true) {
    const { done, value } = await reader.read(view)
    if (done) return text
    text += Buffer.from(value).toString()
    view = new Uint8Array(value.buffer)
  }
}

const WAYS = Object.entries<(response: Response) => Promise<unknown>>({
  'text()': (response) => response.text(),
  'json()': async (response) => JSON.stringify(await response.json()),
  'arrayBuffer()': async (response) => Buffer.from(await response.arrayBuffer()).toString(),
  'blob()': async (response) => (await response.blob()).text(),
  'a reader': (response) => readByHand(bodyOf(response).getReader()),
  'a reader that brings its buffer': (response) => readInto(bodyOf(response)),
  'for await': (response) => textOf(bodyOf(response)),
  'values()': (response) => textOf(bodyOf(response).values()),
  'pipeThrough()': async (response) => {
    const { chunks, error } = await readAll(bodyOf(response).pipeThrough(new TextDecoderStream()))
    if (error !== undefined) throw error
    return chunks.join('')
  },
  'pipeTo()': async (response) => {
    const through = new TransformStream<Uint8Array, Uint8Array>()
    const [, text] = await Promise.all([
      bodyOf(response).pipeTo(through.writable),
      textOf(through.readable),
    ])
    return text
  },
  'tee()': async (response) => {
    const [left, right] = await Promise.all(bodyOf(response).tee().map(textOf))
    expect(left).toBe(right)
    return left
  },
  'clone()': async (response) => {
    const [left, right] = await Promise.all([response.clone().text(), response.text()])
    expect(left).toBe(right)
    return left
  },
  'Readable.fromWeb()': async (response) =>
    (await buffer(Readable.fromWeb(bodyOf(response) as never))).toString(),
  'another Response': (response) => new Response(response.body).text(),
})

describe('watched answer', () => {
  it('every way to read a response works with a response of fetch itself', async () => {
    const guard = startGuard({})
    for (const [, read] of WAYS) {
      const response = await guard.fetch(`data:application/json,${TEXT}`)
      expect(await read(response)).toBe(TEXT)
    }
    expect(endsOf(guard)).toMatchObject({ complete: WAYS.length })
  })

  it('a constructed response that claims the type of a fetched one keeps its chunks', async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue('text')
        controller.close()
      },
    })
    const answer = Object.defineProperty(new Response(body), 'type', { value: 'basic' })
    const response = await startGuard({}).run(async () => answer)
    expect(await readAll(bodyOf(response))).toMatchObject({ chunks: ['text'], error: undefined })
  })

  it('a watched response wraps the original and leaves its prototypes alone', async () => {
    const { guard, answer, ask } = start(source(), {}, { 'x-vendor': 'yes' })
    const { body } = answer
    const response = await ask()
    expect(response).not.toBe(answer)
    expect([response.status, response.headers.get('x-vendor')]).toEqual([200, 'yes'])
    expect(Object.getPrototypeOf(answer)).toBe(Response.prototype)
    expect(Object.getPrototypeOf(body)).toBe(ReadableStream.prototype)
    expect([Object.keys(answer), Object.keys(body as object)]).toEqual([[], []])
    expect([response.bodyUsed, response.body?.locked]).toEqual([false, false])
    const reader = bodyOf(response).getReader()
    expect(reader).toBeInstanceOf(ReadableStreamDefaultReader)
    expect(response.body?.locked).toBe(true)
    await readByHand(reader)
    expect(await reader.closed).toBeUndefined()
    expect(response.bodyUsed).toBe(true)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it.each(WAYS)('an answer read by %s counts as complete', async (_, read) => {
    const { guard, ask } = start(source({ waitMs: 1 }))
    const response = await ask()
    expect(guard.snapshot().active).toBe(1)
    expect(await read(response)).toBe(TEXT)
    await until('it counts', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it.each(WAYS)('a silent answer fails %s with the reason', async (_, read) => {
    const { guard, ask } = start(source({ stalls: true }), { timeout: { idleMs: 60 } })
    const response = await ask()
    expect(codeOf(await errorOf(read(response)))).toBe('CALL_TIMEOUT')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
  })

  it('an answer may be read as form data', async () => {
    const form = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes('a=1&b=2'))
        controller.close()
      },
    })
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const { guard, ask } = start(form, {}, type)
    expect([...(await (await ask()).formData())]).toEqual([
      ['a', '1'],
      ['b', '2'],
    ])
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it.each([
    ['text()', (response: Response) => response.text()],
    ['json()', (response: Response) => response.json()],
    ['blob()', (response: Response) => response.blob()],
    ['clone()', (response: Response) => response.clone().text()],
    ['cancel()', (response: Response) => bodyOf(response).cancel()],
    ['a reader', (response: Response) => bodyOf(response).getReader().read()],
  ])('a response released unread reports the timeout to a late %s', async (_, read) => {
    const { guard, ask } = start(source({ stalls: true }), { timeout: { unreadMs: 30 } })
    const response = await ask()
    await until('the guard releases it', () => guard.snapshot().active === 0)
    expect(codeOf(await errorOf(read(response)))).toBe('CALL_TIMEOUT')
  })

  it('`closed` of a reader rejects when its answer was cut off', async () => {
    const { ask } = start(source({ stalls: true }), { timeout: { idleMs: 60 } })
    const reader = bodyOf(await ask()).getReader()
    const { closed } = reader
    expect(codeOf(await errorOf(readByHand(reader)))).toBe('CALL_TIMEOUT')
    expect(codeOf(await errorOf(closed))).toBe('CALL_TIMEOUT')
    expect(codeOf(await errorOf(reader.cancel()))).toBe('CALL_TIMEOUT')
  })

  it('a Response subclass or an answer of another guard is watched through a copy', async () => {
    class Special extends Response {}
    const inner = startGuard({ fetch: { fetch: async () => new Special(source()) } })
    const outer = startGuard({ fetch: { fetch: inner.fetch } })
    expect(await (await outer.fetch('http://vendor.test/')).text()).toBe(TEXT)
    expect([endsOf(inner), endsOf(outer)]).toEqual([{ complete: 1 }, { complete: 1 }])
  })
})

describe('reader of a watched answer', () => {
  it('a reader that releases its lock while waiting lets the next one read everything', async () => {
    const { guard, ask } = start(source({ waitMs: 20 }), { timeout: { idleMs: 5_000 } })
    const body = bodyOf(await ask())
    const first = body.getReader()
    const read = errorOf(first.read())
    first.releaseLock()
    expect(await read).toBeInstanceOf(TypeError)
    // It cannot cancel for later readers either.
    expect(await errorOf(first.cancel())).toBeInstanceOf(TypeError)
    expect(guard.snapshot().active).toBe(1)
    expect(await readByHand(body.getReader())).toBe(TEXT)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('a reader may iterate a little and read the rest in another way', async () => {
    const { guard, ask } = start(source())
    const body = bodyOf(await ask())
    const pieces: Uint8Array[] = []
    for await (const piece of body.values({ preventCancel: true })) {
      pieces.push(piece)
      break
    }
    expect(body.locked).toBe(false)
    expect(guard.snapshot().active).toBe(1)
    expect(Buffer.concat(pieces) + (await readByHand(body.getReader()))).toBe(TEXT)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('a reader with two pending reads still waits after one chunk', async () => {
    const one = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes('one')),
    })
    const { guard, ask } = start(one, { timeout: { idleMs: 60, unreadMs: 5_000 } })
    const reader = bodyOf(await ask()).getReader()
    const [first, second] = [reader.read(), errorOf(reader.read())]
    expect((await first).done).toBe(false)
    expect(codeOf(await second)).toBe('CALL_TIMEOUT')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
  })

  it('a reader made with its constructor is seen like any other', async () => {
    const limits = { timeout: { idleMs: 60, unreadMs: 5_000 } }
    const { guard, ask } = start(source({ stalls: true }), limits)
    const reader = new ReadableStreamDefaultReader(bodyOf(await ask()))
    const text = readByHand(reader as ReadableStreamDefaultReader<Uint8Array>)
    expect(codeOf(await errorOf(text))).toBe('CALL_TIMEOUT')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
  })

  it('a stream locked by one reader cannot be cancelled by another', async () => {
    const { guard, ask } = start(source())
    const body = bodyOf(await ask())
    const reader = body.getReader()
    expect(await errorOf(body.cancel())).toBeInstanceOf(TypeError)
    expect(() => body.getReader()).toThrow(TypeError)
    expect(() => body.tee()).toThrow(TypeError)
    expect(await errorOf(body.pipeTo(new WritableStream()))).toBeInstanceOf(TypeError)
    expect(guard.snapshot().active).toBe(1)
    await reader.cancel()
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
  })
})
