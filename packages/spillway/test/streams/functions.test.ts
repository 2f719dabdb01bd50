// test-group: sockets, slow

/** User functions whose answer continues after they returned it, in every form. */
import { type IncomingMessage, request } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import Anthropic from '@anthropic-ai/sdk'
import type { MockKnobs, MockVendor } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import type { CallContext, Guard, GuardOptions } from 'spillway'
import { createVirtualClock, type VirtualClock } from 'spillway/testing'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import { startVendor } from '../mock-client.js'
import {
  codeOf,
  endsOf,
  errorOf,
  outcomesOf,
  pauseMs,
  QUESTION,
  question,
  readAll,
  startGuard,
  until,
} from './stream-kit.js'

type Answer = AsyncIterable<unknown>

interface Form {
  name: string
  /**
   * Ignores the context's signal where the guard can cut the stream by itself. It cannot see what a
   * generator hides.
   */
  ask(url: string, context: CallContext): Promise<unknown>
  /** The iterable part of the returned value. */
  read(answer: never): Answer
}

const same = (answer: Answer) => answer

const FORMS: Form[] = [
  {
    name: 'a Response',
    ask: (url) => fetch(`${url}/v1/chat/completions`, question()),
    read: (response: Response) => response.body as unknown as Answer,
  },
  {
    name: 'a Web stream',
    ask: async (url) => (await fetch(`${url}/v1/chat/completions`, question())).body,
    read: same,
  },
  {
    name: 'a Node stream',
    async ask(url) {
      const { body } = await fetch(`${url}/v1/chat/completions`, question())
      return Readable.fromWeb(body as never)
    },
    read: same,
  },
  {
    name: 'what came in over node:http',
    ask: (url) => askOverHttp(url),
    read: same,
  },
  {
    name: 'an async generator',
    async ask(url, { signal }) {
      const { body } = await fetch(`${url}/v1/chat/completions`, question({}, signal))
      return (async function* () {
        yield* body as unknown as Answer
      })()
    },
    read: same,
  },
  {
    name: 'an iterable object',
    async ask(url, { signal }) {
      const { body } = await fetch(`${url}/v1/chat/completions`, question({}, signal))
      return { [Symbol.asyncIterator]: () => (body as unknown as Answer)[Symbol.asyncIterator]() }
    },
    read: same,
  },
  {
    name: 'the stream of the OpenAI SDK',
    ask: (url) =>
      openai(url).chat.completions.create({ model: 'gpt', messages: QUESTION, stream: true }),
    read: same,
  },
  {
    name: 'the stream of the Anthropic SDK',
    ask: (url) =>
      anthropic(url).messages.create({
        model: 'claude',
        max_tokens: 10_000,
        messages: QUESTION,
        stream: true,
      }),
    read: same,
  },
]

function openai(url: string) {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0, logLevel: 'off' })
}

function anthropic(url: string) {
  return new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0, logLevel: 'off' })
}

function askOverHttp(url: string): Promise<IncomingMessage> {
  const { body, headers } = question()
  return new Promise((resolve, reject) => {
    const clientRequest = request(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: headers as Record<string, string>,
    })
    clientRequest.on('response', resolve)
    clientRequest.on('error', reject)
    clientRequest.end(body)
  })
}

interface Stage {
  vendor: MockVendor
  guard: Guard
  ask(): Promise<Answer>
}

async function start(
  form: Form,
  knobs: MockKnobs,
  options: GuardOptions = {},
  clock?: VirtualClock,
): Promise<Stage> {
  const { vendor, url } = await startVendor({ knobs })
  const guard = startGuard(
    {
      concurrency: { limit: 10 },
      breaker: { consecutiveFailures: 1, openMs: 60_000 },
      ...options,
    },
    clock,
  )
  return {
    vendor,
    guard,
    ask: async () => {
      const answer = await guard.run((context) => form.ask(url, context))
      return form.read(answer as never)
    },
  }
}

describe.concurrent.each(FORMS)('answer as $name', (form) => {
  it('a streamed answer holds its slot until it has ended and then counts', async () => {
    const { guard, ask } = await start(form, { tokens: 20, tokenMs: 2 })
    const answer = await ask()
    expect(guard.snapshot().active).toBe(1)
    expect(outcomesOf(guard)).toEqual({})
    const { chunks, error } = await readAll(answer)
    expect(error).toBeUndefined()
    expect(chunks.length).toBeGreaterThan(2)
    await until('it counts', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ complete: 1 })
    expect(outcomesOf(guard)).toEqual({ success: 1 })
  })

  it('a cut answer ends with an error and counts as a failure', async () => {
    const { guard, ask } = await start(form, { tokens: 60, cutAfter: 40, tokenMs: 1 })
    const { chunks, error } = await readAll(await ask())
    expect(chunks.length).toBeGreaterThan(2)
    expect(error).toBeInstanceOf(Error)
    await until('it counts', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    expect(codeOf(await errorOf(ask()))).toBe('CIRCUIT_OPEN')
  })

  it('a silent answer is ended after idleMs and cancelled at the vendor', async () => {
    const { vendor, guard, ask } = await start(
      form,
      { tokens: 60, stallAfter: 5, tokenMs: 1 },
      { timeout: { idleMs: 150 } },
    )
    const { error } = await readAll(await ask())
    expect(codeOf(error)).toBe('CALL_TIMEOUT')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
    expect(guard.snapshot().active).toBe(0)
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
  })

  it('an unread answer is released after unreadMs and cancelled at the vendor', async () => {
    const { vendor, guard, ask } = await start(
      form,
      { tokens: 10, stallAfter: 3 },
      { timeout: { unreadMs: 100 } },
    )
    const answer = await ask()
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
    expect(guard.snapshot().active).toBe(0)
    expect((await readAll(answer)).error).toBeInstanceOf(Error)
  })

  it('an unread answer is released although the vendor has sent all of it', async () => {
    const { guard, ask } = await start(form, { tokens: 3 }, { timeout: { unreadMs: 100 } })
    await ask()
    await until('it is let go', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
  })

  it('a streamed answer may be read slowly', async () => {
    // The guard's time stands still while the vendor is waited for.
    const clock = createVirtualClock()
    const { guard, ask } = await start(
      form,
      { tokens: 3, tokenMs: 20 },
      { timeout: { firstByteMs: 1_500, idleMs: 1_500 } },
      clock,
    )
    const answer = await ask()
    // Longer than both timeouts before the first read and after it.
    await clock.advance(1_600)
    let chunks = 0
    for await (const _ of answer) if (chunks++ === 0) await clock.advance(1_600)
    await until('it counts', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('an answer whose reader breaks off is cancelled at once and counts as ignored', async () => {
    const { vendor, guard, ask } = await start(form, { tokens: 1_000, tokenMs: 5 })
    const answer = await ask()
    for await (const _ of answer) break
    await until('it counts', () => guard.snapshot().active === 0)
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it('a streamed answer ends when its caller aborts', async () => {
    const { vendor, guard } = await start(form, { tokens: 10, stallAfter: 3 })
    const { url } = await vendor.start()
    const leave = new AbortController()
    const answer = form.read(
      (await guard.run((context) => form.ask(url, context), { signal: leave.signal })) as never,
    )
    const reading = readAll(answer)
    await until('three tokens were sent', () => vendor.calls[0]?.tokensSent === 3)
    const reason = new Error('enough')
    leave.abort(reason)
    expect(guard.snapshot().active).toBe(0)
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect((await reading).error).toBe(reason)
    expect(endsOf(guard)).toEqual({ aborted: 1 })
  })

  it('a streamed answer ends at its deadline', async () => {
    // The guard's time stands still while the vendor is waited for.
    const clock = createVirtualClock()
    const { vendor, guard } = await start(form, { tokens: 10, stallAfter: 3 }, {}, clock)
    const { url } = await vendor.start()
    const answer = await guard.run((context) => form.ask(url, context), { timeoutMs: 3_000 })
    const reading = readAll(form.read(answer as never))
    await until('three tokens were sent', () => vendor.calls[0]?.tokensSent === 3)
    await clock.advance(2_999)
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(1)
    expect(codeOf((await reading).error)).toBe('DEADLINE_EXCEEDED')
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(guard.snapshot().active).toBe(0)
  })

  it('close() cuts a streamed answer after graceMs', async () => {
    const { vendor, guard, ask } = await start(form, { tokens: 1_000, tokenMs: 5 })
    const reading = readAll(await ask())
    await pauseMs(30)
    await guard.close({ graceMs: 50 })
    expect(codeOf((await reading).error)).toBe('SHUTTING_DOWN')
    await until('the vendor is idle', () => vendor.atOnce === 0)
    expect(guard.snapshot().active).toBe(0)
  })
})

describe.concurrent('Node stream', () => {
  it.each(['data', 'pipe', 'read'])('a Node stream may be read by %s', async (way) => {
    const { guard, ask } = await start(FORMS[3] as Form, { tokens: 20, tokenMs: 2 })
    const stream = (await ask()) as unknown as IncomingMessage
    let bytes = 0
    const over = new Promise((resolve, reject) => stream.on('end', resolve).on('error', reject))
    if (way === 'data') stream.on('data', (chunk) => (bytes += chunk.length))
    if (way === 'pipe') {
      stream.pipe(new PassThrough()).on('data', (chunk) => (bytes += chunk.length))
    }
    if (way === 'read') {
      stream.on('readable', () => {
        for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) bytes += chunk.length
      })
    }
    await over
    await until('it counts', () => guard.snapshot().active === 0)
    expect(bytes).toBeGreaterThan(1_000)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it.each(['data', 'pipe', 'read'])('a silent Node stream read by %s is ended', async (way) => {
    const { guard, ask } = await start(
      FORMS[3] as Form,
      { tokens: 60, stallAfter: 10, tokenMs: 1 },
      { timeout: { idleMs: 150, unreadMs: 5_000 } },
    )
    const stream = (await ask()) as unknown as IncomingMessage
    const failed = new Promise((resolve) => stream.on('error', resolve))
    if (way === 'data') stream.on('data', () => {})
    if (way === 'pipe') stream.pipe(new PassThrough()).resume()
    if (way === 'read') {
      stream.on('readable', () => {
        while (stream.read() !== null);
      })
    }
    expect(codeOf(await failed)).toBe('CALL_TIMEOUT')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
  })

  it('a paused Node stream does not time out', async () => {
    const { guard, ask } = await start(
      FORMS[3] as Form,
      { tokens: 6, stallAfter: 3, stallMs: 1_800, tokenMs: 1 },
      { timeout: { idleMs: 1_500 } },
    )
    const stream = (await ask()) as unknown as IncomingMessage
    let seen = 0
    stream.on('data', () => {
      seen++
      if (seen !== 3) return
      stream.pause()
      setTimeout(() => stream.resume(), 2_000)
    })
    await new Promise((resolve, reject) => stream.on('end', resolve).on('error', reject))
    await until('it counts', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('a client that disconnects from a piped stream is not a failure of the vendor', async () => {
    const { vendor, guard, ask } = await start(FORMS[3] as Form, { tokens: 1_000, tokenMs: 5 })
    const stream = (await ask()) as unknown as IncomingMessage
    const client = new PassThrough()
    const piping = pipeline(stream, client)
    client.once('data', () => client.destroy())
    expect(await errorOf(piping)).toBeInstanceOf(Error)
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    await until('it counts', () => guard.snapshot().active === 0)
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it('a Node stream that has already ended counts as a plain value', async () => {
    const guard = startGuard()
    const ended = Readable.from([])
    ended.resume()
    await new Promise((resolve) => ended.on('close', resolve))
    expect(await guard.run(() => ended)).toBe(ended)
    expect(guard.snapshot().active).toBe(0)
    expect(outcomesOf(guard)).toEqual({ success: 1 })
  })

  it('a Node stream is wrapped, and everything its class has is reached through the wrapper', async () => {
    class Labelled extends Readable {
      readonly label = 'vendor'
      shout(): string {
        return this.label.toUpperCase()
      }
    }
    const guard = startGuard()
    const source = new Labelled({ read() {} })
    const stream = await guard.run(() => source)
    expect(stream).not.toBe(source)
    expect([stream.label, stream.shout()]).toEqual(['vendor', 'VENDOR'])
    expect([source.push, source.read]).toEqual([Readable.prototype.push, Readable.prototype.read])
    source.push('a')
    source.push(null)
    expect(String(Buffer.concat((await readAll(stream)).chunks as Buffer[]))).toBe('a')
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })
})

describe.concurrent('SDK stream', () => {
  const form = FORMS[6] as Form

  it('an SDK stream keeps its class, methods and controller', async () => {
    const { vendor, guard, ask } = await start(form, { tokens: 1_000, tokenMs: 2 })
    const stream = (await ask()) as unknown as { controller: AbortController } & Answer
    expect(stream.controller).toBeInstanceOf(AbortController)
    for await (const _ of stream) stream.controller.abort()
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
  })

  it('an SDK stream is watched when it is split or turned into a Web stream', async () => {
    const { guard, ask } = await start(form, { tokens: 5, tokenMs: 2 })
    const split = (await ask()) as unknown as { tee(): [Answer, Answer] }
    const [left, right] = await Promise.all(split.tee().map(readAll))
    expect(left?.chunks.length).toBeGreaterThan(4)
    expect(left).toEqual(right)
    expect(endsOf(guard)).toEqual({ complete: 1 })
    const other = (await ask()) as unknown as { toReadableStream(): ReadableStream }
    expect((await readAll(other.toReadableStream())).chunks.length).toBeGreaterThan(4)
    expect(endsOf(guard)).toEqual({ complete: 2 })
  })

  it('a page of an SDK list counts as a complete answer', async () => {
    const { vendor, guard } = await start(form, {})
    const { url } = await vendor.start()
    const page = await guard.run(() => openai(url).models.list())
    expect(Array.isArray(page.data)).toBe(true)
    expect(guard.snapshot().active).toBe(0)
    expect(outcomesOf(guard)).toEqual({ success: 1 })
  })
})

describe.concurrent('nested guards', () => {
  it.each(FORMS)('$name ends for both guards', async (form) => {
    const { vendor, guard, ask } = await start(form, { tokens: 5, tokenMs: 2 })
    const outer = startGuard({ concurrency: { limit: 1 } })
    const { url } = await vendor.start()
    const answer = await outer.run(() => guard.run((context) => form.ask(url, context)))
    expect([outer.snapshot().active, guard.snapshot().active]).toEqual([1, 1])
    expect((await readAll(form.read(answer as never))).error).toBeUndefined()
    await until('both are over', () => outer.snapshot().active + guard.snapshot().active === 0)
    expect([endsOf(outer), endsOf(guard)]).toEqual([{ complete: 1 }, { complete: 1 }])
    const left = await outer.run(ask)
    for await (const _ of left) break
    await until('both are over', () => outer.snapshot().active + guard.snapshot().active === 0)
    expect([endsOf(outer), endsOf(guard)]).toEqual([
      { complete: 1, abandoned: 1 },
      { complete: 1, abandoned: 1 },
    ])
  })
})
