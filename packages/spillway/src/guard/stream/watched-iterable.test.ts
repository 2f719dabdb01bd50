import { createSpillway } from 'spillway'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../core/time/clock.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'

const UNREAD_MS = 100

function startGuard() {
  const clock = createVirtualClock()
  const spillway = createSpillway({ clock })
  const guard = spillway.guard('vendor', { timeout: { unreadMs: UNREAD_MS } })
  return { clock, guard, bodies: () => guard.snapshot().bodies }
}

async function* twoChunks() {
  yield 'a'
  yield 'b'
}

/** As the SDKs define it: with a private member that its methods use. */
class SdkStream {
  readonly #client = 'client'
  iterator: () => AsyncIterator<string>
  controller: AbortController

  constructor(iterator: () => AsyncIterator<string>, controller: AbortController) {
    this.iterator = iterator
    this.controller = controller
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.iterator()
  }

  async joined(): Promise<string> {
    let all = this.#client
    for await (const chunk of this) all += chunk
    return all
  }
}

/** Its iterator is not exchangeable, and its method reads private state. */
class ClosedStream {
  readonly #source = twoChunks()
  readonly controller = new AbortController()
  readonly id = 7;

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.#source
  }

  async joined(): Promise<string> {
    let all = ''
    for await (const chunk of this.#source) all += chunk
    return all
  }
}

/** As the SDKs define streams that they read themselves, such as Anthropic's `MessageStream`. */
class SelfReadingStream {
  readonly controller = new AbortController()
  readonly #clock: Clock
  readonly #end: Promise<void>
  #ended = false

  constructor(clock: Clock, failure?: Error) {
    this.#clock = clock
    this.#end = sleep(clock, 5 * UNREAD_MS, this.controller.signal)
      .then(() => {
        if (failure !== undefined) throw failure
      })
      .finally(() => {
        this.#ended = true
      })
    this.#end.catch(() => {})
  }

  get ended(): boolean {
    return this.#ended
  }

  on(): this {
    return this
  }

  async connected(): Promise<void> {
    await sleep(this.#clock, 2 * UNREAD_MS)
  }

  async finalMessage(): Promise<string> {
    await this.#end
    return 'ab'
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    await this.#end
    yield 'ab'
  }
}

async function readAll(source: AsyncIterable<unknown>): Promise<unknown[]> {
  const chunks: unknown[] = []
  for await (const chunk of source) chunks.push(chunk)
  return chunks
}

describe('a streamed answer that is an async iterable', () => {
  it.each([
    ['a generator', twoChunks],
    ['an SDK stream', () => new SdkStream(twoChunks, new AbortController())],
    ['another iterable class', () => new ClosedStream()],
    ['a frozen iterable', () => Object.freeze({ [Symbol.asyncIterator]: twoChunks })],
  ])('%s is wrapped and watched, and keeps its own properties', async (_, create) => {
    const { guard, bodies } = startGuard()
    const source: AsyncIterable<string> = create()
    const before = Object.getOwnPropertyDescriptors(source)
    const answer = await guard.run(() => source)
    expect(answer).not.toBe(source)
    expect(await readAll(answer)).toEqual(['a', 'b'])
    expect(bodies()).toMatchObject({ complete: 1 })
    expect(guard.snapshot().active).toBe(0)
    expect(Object.getOwnPropertyDescriptors(source)).toEqual(before)
  })

  it('an SDK stream stays of its class, and its methods are watched', async () => {
    const { guard, bodies } = startGuard()
    const source = Object.assign(new SdkStream(twoChunks, new AbortController()), { id: 7 })
    const answer = await guard.run(() => source)
    expect(answer).toBeInstanceOf(SdkStream)
    expect(answer.controller).toBe(source.controller)
    expect(answer.id).toBe(7)
    expect(await answer.joined()).toBe('clientab')
    expect(bodies()).toMatchObject({ complete: 1 })
  })

  it('methods of another iterable class work on its private members, and are not cut as unread', async () => {
    const { clock, guard, bodies } = startGuard()
    const answer = await guard.run(() => new ClosedStream())
    expect(answer).toBeInstanceOf(ClosedStream)
    expect(answer.id).toBe(7)
    expect(await answer.joined()).toBe('ab')
    await clock.advance(UNREAD_MS)
    expect(bodies()).toMatchObject({ abandoned: 1 })
    expect(answer.controller.signal.aborted).toBe(false)
    expect(guard.snapshot().active).toBe(0)
  })

  it('an unread iterable with a controller is aborted after unreadMs', async () => {
    const { clock, guard, bodies } = startGuard()
    const answer = await guard.run(() => new ClosedStream())
    await clock.advance(UNREAD_MS)
    expect(bodies()).toMatchObject({ abandoned: 1 })
    expect(answer.controller.signal.aborted).toBe(true)
  })

  it('a generator that is read by next() and return() is watched', async () => {
    const { guard, bodies } = startGuard()
    const answer = await guard.run(() => twoChunks())
    expect(await answer.next()).toEqual({ done: false, value: 'a' })
    await answer.return()
    expect(bodies()).toMatchObject({ abandoned: 1 })
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('a streamed answer that reads itself', () => {
  async function start(failure?: Error) {
    const { clock, guard, bodies } = startGuard()
    let signal: AbortSignal | undefined
    const answer = await guard.run((context) => {
      signal = context.signal
      return new SelfReadingStream(clock, failure)
    })
    return { clock, guard, bodies, answer, aborted: () => signal?.aborted }
  }

  it('a method that waits for the whole answer is not cut, and its end frees the slot', async () => {
    const { clock, guard, bodies, answer, aborted } = await start()
    const message = answer.on().finalMessage()
    await clock.advance(4 * UNREAD_MS)
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(UNREAD_MS)
    expect(await message).toBe('ab')
    expect(aborted()).toBe(false)
    expect(guard.snapshot().active).toBe(0)
    expect(bodies()).toMatchObject({ complete: 1, abandoned: 0 })
  })

  it('an answer that breaks off while a method waits for it is truncated', async () => {
    const { clock, guard, bodies, answer } = await start(new Error('cut'))
    const message = answer.finalMessage()
    message.catch(() => {})
    await clock.advance(5 * UNREAD_MS)
    await expect(message).rejects.toThrow('cut')
    expect(bodies()).toMatchObject({ truncated: 1 })
    expect(guard.snapshot().active).toBe(0)
  })

  it('an answer that its reader aborts while a method waits for it is abandoned', async () => {
    const { clock, guard, bodies, answer } = await start()
    const message = answer.finalMessage()
    message.catch(() => {})
    await clock.advance(10)
    answer.controller.abort()
    await clock.advance(1)
    expect(bodies()).toMatchObject({ abandoned: 1, truncated: 0 })
    expect(guard.snapshot().active).toBe(0)
  })

  it('a method that returns before the answer has ended does not end it', async () => {
    const { clock, guard, bodies, answer } = await start()
    const connected = answer.connected()
    await clock.advance(2 * UNREAD_MS)
    await connected
    expect(guard.snapshot().active).toBe(1)
    const chunks = readAll(answer)
    await clock.advance(3 * UNREAD_MS)
    expect(await chunks).toEqual(['ab'])
    expect(bodies()).toMatchObject({ complete: 1 })
  })

  it('an answer that is not read on after such a method is abandoned', async () => {
    const { clock, guard, bodies, answer } = await start()
    const connected = answer.connected()
    await clock.advance(2 * UNREAD_MS)
    await connected
    await clock.advance(UNREAD_MS)
    expect(bodies()).toMatchObject({ abandoned: 1 })
    expect(guard.snapshot().active).toBe(0)
  })

  it('a method that returns its stream returns the watched one', async () => {
    const { answer } = await start()
    expect(answer.on()).toBe(answer)
  })
})
