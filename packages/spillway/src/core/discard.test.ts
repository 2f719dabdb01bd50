import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { discardResult } from './discard.js'

function webStream() {
  let cancelled = false
  const stream = new ReadableStream({
    cancel() {
      cancelled = true
    },
  })
  return { stream, isReleased: () => cancelled }
}

function nodeStream() {
  const stream = new Readable({ read() {} })
  return { stream, isReleased: () => stream.destroyed }
}

describe('discardResult', () => {
  it.each([
    ['a Response', (stream: unknown) => new Response(stream as ReadableStream), webStream],
    ['a web stream', (stream: unknown) => stream, webStream],
    ['a Node stream', (stream: unknown) => stream, nodeStream],
    ['{ body } with a Node stream', (body: unknown) => ({ statusCode: 200, body }), nodeStream],
    ['{ body } with a web stream', (body: unknown) => ({ statusCode: 200, body }), webStream],
    ['{ data } with a Node stream', (data: unknown) => ({ status: 200, data }), nodeStream],
    [
      '{ data, response } of an SDK',
      (stream: unknown) => ({ data: 1, response: new Response(stream as ReadableStream) }),
      webStream,
    ],
  ] as const)('discardResult releases %s', (_, wrap, make) => {
    const { stream, isReleased } = make()
    discardResult(wrap(stream))
    expect(isReleased()).toBe(true)
  })

  it('discardResult aborts the request of an SDK stream', () => {
    const controller = new AbortController()
    discardResult({ controller, async *[Symbol.asyncIterator]() {} })
    expect(controller.signal.aborted).toBe(true)
  })

  it('discardResult ends a generator that has begun', async () => {
    let ended = false
    async function* generate() {
      try {
        yield 1
        yield 2
      } finally {
        ended = true
      }
    }
    const generator = generate()
    await generator.next()
    discardResult(generator)
    await new Promise(setImmediate)
    expect(ended).toBe(true)
  })

  it('discardResult does not end the process when a destroyed stream emits an error', async () => {
    const stream = new Readable({
      read() {},
      destroy: (_, done) => done(new Error('aborted before it was read')),
    })
    discardResult({ statusCode: 200, body: stream })
    await new Promise(setImmediate)
    expect(stream.destroyed).toBe(true)
  })

  it.each([
    undefined,
    null,
    'text',
    7,
    {},
    { body: 'text' },
    { cancel: () => {} },
    new Response(null, { status: 204 }),
    Object.defineProperty({}, 'body', {
      get() {
        throw new Error('not readable')
      },
    }),
  ])('discardResult leaves %j alone', (value) => {
    expect(discardResult(value)).toBe(false)
  })

  it('discardResult accepts a body that is being read', async () => {
    const { stream, isReleased } = webStream()
    const reader = stream.getReader()
    const unhandled: unknown[] = []
    const listen = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listen)
    expect(() => discardResult(stream)).not.toThrow()
    await new Promise(setImmediate)
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
    expect(isReleased()).toBe(false)
    await reader.cancel()
  })
})
