import { createSpillway } from 'spillway'
import { describe, expect, it } from 'vitest'
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
