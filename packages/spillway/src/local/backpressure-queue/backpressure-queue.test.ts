import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { createBackpressureQueue } from './backpressure-queue.js'
import {
  queueReadable,
  queueReadableStream,
  queueWritable,
  queueWritableStream,
} from './streams.js'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Resolves to true while the promise is still pending. */
async function isOpen(promise: Promise<unknown> | undefined): Promise<boolean> {
  let open = true
  const settled = () => {
    open = false
  }
  promise?.then(settled, settled)
  await turn()
  return promise !== undefined && open
}

describe('backpressure queue', () => {
  it('producers wait from the high watermark until the queue drains to the low watermark', async () => {
    const queue = createBackpressureQueue<number>({ size: 10, highWatermark: 4, lowWatermark: 1 })
    for (let item = 0; item < 4; item++) expect(queue.put(item)).toBeUndefined()
    expect(queue.paused).toBe(true)
    const fifth = queue.put(4)
    await queue.take()
    await queue.take()
    expect(await isOpen(fifth)).toBe(true)
    await queue.take()
    expect(await isOpen(fifth)).toBe(false)
    expect(queue.paused).toBe(false)
    expect(queue.length).toBe(2)
  })

  it('offer() never fills the queue beyond its size', () => {
    const queue = createBackpressureQueue<number>({ size: 5, highWatermark: 3 })
    const taken = Array.from({ length: 10 }, (_, item) => queue.offer(item))
    expect(taken.filter(Boolean)).toHaveLength(5)
    expect(queue.snapshot()).toMatchObject({ length: 5, paused: true })
  })

  it('put() rejects with QUEUE_FULL once maxWaiting producers wait', async () => {
    const queue = createBackpressureQueue<number>({ name: 'lines', size: 1, maxWaiting: 2 })
    queue.put(0)
    const waiting = [queue.put(1), queue.put(2)]
    await expect(queue.put(3)).rejects.toMatchObject({
      code: 'QUEUE_FULL',
      message: 'lines: 1 item in the queue, and 2 producers already waiting (maxWaiting)',
    })
    queue.close()
    await Promise.allSettled(waiting)
  })

  it('items leave the queue in the order in which they were put, including those of waiting producers', async () => {
    const queue = createBackpressureQueue<number>({ size: 3 })
    const puts = Array.from({ length: 20 }, (_, item) => queue.put(item))
    const taken: unknown[] = []
    for (let item = 0; item < 20; item++) taken.push((await queue.take()).value)
    await Promise.all(puts)
    expect(taken).toEqual(Array.from({ length: 20 }, (_, item) => item))
  })

  it('offer() fails while a producer waits, so it cannot overtake', async () => {
    const queue = createBackpressureQueue<string>({ size: 10, highWatermark: 1, lowWatermark: 0 })
    queue.put('first')
    const waiting = queue.put('second')
    expect(queue.offer('third')).toBe(false)
    await queue.take()
    await waiting
    expect((await queue.take()).value).toBe('second')
  })

  it('a closed queue refuses producers at once and ends consumers once it is empty', async () => {
    const queue = createBackpressureQueue<number>({ size: 2, highWatermark: 2 })
    queue.put(1)
    queue.put(2)
    const late = queue.put(3)
    queue.close()
    await expect(late).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await expect(queue.put(4)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(queue.offer(5)).toBe(false)
    expect(await all(queue)).toEqual([1, 2])
    expect(await queue.take()).toEqual({ done: true, value: undefined })
  })

  it('close() ends waiting consumers, and rejects them if it was given an error', async () => {
    const clean = createBackpressureQueue<number>({ size: 2 })
    const taking = clean.take()
    clean.close()
    expect(await taking).toEqual({ done: true, value: undefined })
    const failed = createBackpressureQueue<number>({ size: 2 })
    failed.put(1)
    failed.close(new Error('the source broke'))
    expect((await failed.take()).value).toBe(1)
    await expect(failed.take()).rejects.toThrow('the source broke')
  })

  it('an aborted producer or consumer leaves the queue without a trace', async () => {
    const queue = createBackpressureQueue<number>({ size: 1, highWatermark: 1 })
    const leaving = new AbortController()
    const taking = queue.take({ signal: leaving.signal })
    leaving.abort(new Error('gone'))
    await expect(taking).rejects.toThrow('gone')
    queue.put(1)
    const other = new AbortController()
    const putting = queue.put(2, { signal: other.signal })
    other.abort(new Error('gone too'))
    await expect(putting).rejects.toThrow('gone too')
    expect(queue.snapshot()).toMatchObject({ length: 1, producers: 0, consumers: 0 })
    await expect(queue.put(3, { signal: other.signal })).rejects.toThrow('gone too')
    queue.close()
    expect(await all(queue)).toEqual([1])
  })

  it('other consumers continue when one of them stops', async () => {
    const queue = createBackpressureQueue<number>({ size: 10 })
    for (let item = 0; item < 6; item++) queue.put(item)
    queue.close()
    for await (const item of queue) if (item === 2) break
    expect(await all(queue)).toEqual([3, 4, 5])
  })

  it('queue loses no item, duplicates none and stays within its size under random use', async () => {
    const action = fc.oneof(fc.constant('put'), fc.constant('offer'), fc.constant('take'))
    const options = fc
      .record({
        size: fc.integer({ min: 1, max: 8 }),
        low: fc.nat(7),
        high: fc.integer({ min: 1, max: 8 }),
      })
      .filter(({ size, low, high }) => high <= size && low < high)
    await fc.assert(
      fc.asyncProperty(
        options,
        fc.array(action, { maxLength: 200 }),
        async (watermarks, actions) => {
          const { size, low, high } = watermarks
          const queue = createBackpressureQueue<number>({
            size,
            highWatermark: high,
            lowWatermark: low,
          })
          const given: number[] = []
          const puts: Promise<unknown>[] = []
          const takes: Promise<IteratorResult<number, undefined>>[] = []
          let next = 0
          for (const each of actions) {
            if (each === 'take') takes.push(queue.take())
            else if (each === 'put') {
              const item = next++
              const wait = queue.put(item)
              if (wait === undefined) given.push(item)
              else
                puts.push(
                  wait.then(
                    () => given.push(item),
                    () => {},
                  ),
                )
            } else {
              const item = next++
              if (queue.offer(item)) given.push(item)
            }
            expect(queue.length).toBeLessThanOrEqual(size)
          }
          await turn()
          queue.close()
          const early = (await Promise.all(takes)).flatMap(({ done, value }) =>
            done ? [] : [value],
          )
          const rest = await all(queue)
          await Promise.all(puts)
          const received = [...early, ...rest] as number[]
          expect(received).toEqual([...received].sort((a, b) => a - b))
          expect([...received].sort((a, b) => a - b)).toEqual(given.sort((a, b) => a - b))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('createBackpressureQueue names the invalid option', () => {
    const make = (options: object) => () => createBackpressureQueue(options as never)
    expect(make({})).toThrow('backpressureQueue.size: must be a positive integer, got nothing')
    expect(make({ size: 5, highWatermark: 6 })).toThrow(
      'backpressureQueue.highWatermark: must not be above size, which is 5',
    )
    expect(make({ size: 5, highWatermark: 3, lowWatermark: 3 })).toThrow(
      'backpressureQueue.lowWatermark: must be below highWatermark, which is 3',
    )
    expect(make({ size: 5, highWatermrk: 3 })).toThrow("did you mean 'highWatermark'?")
  })
})

describe('backpressure queue between streams', () => {
  const items = Array.from({ length: 100 }, (_, number) => ({ number }))

  it('Node streams pass every item through the queue and the source never runs ahead', async () => {
    const queue = createBackpressureQueue<{ number: number }>({ size: 8 })
    let made = 0
    let used = 0
    let most = 0
    async function* source() {
      for (const item of items) {
        made++
        most = Math.max(most, made - used)
        yield item
      }
    }
    const received: unknown[] = []
    const slow = new Writable({
      objectMode: true,
      highWaterMark: 1,
      write(item, _, done) {
        used++
        received.push(item)
        setImmediate(done)
      },
    })
    await Promise.all([
      pipeline(Readable.from(source(), { highWaterMark: 1 }), queueWritable(queue)),
      pipeline(queueReadable(queue), slow),
    ])
    expect(received).toEqual(items)
    // The queue size plus the items that each stream buffers.
    expect(most).toBeLessThanOrEqual(8 + 6)
  })

  it('an error of the Node source stream reaches the reader', async () => {
    const queue = createBackpressureQueue<number>({ size: 8 })
    async function* source() {
      yield 1
      throw new Error('the source broke')
    }
    const writing = pipeline(Readable.from(source()), queueWritable(queue)).catch(() => {})
    await expect(all(queueReadable(queue))).rejects.toThrow('the source broke')
    await writing
  })

  it('Web streams pass every item through the queue', async () => {
    const queue = createBackpressureQueue<{ number: number }>({ size: 8 })
    const source = new ReadableStream({
      start(controller) {
        for (const item of items) controller.enqueue(item)
        controller.close()
      },
    })
    const written = source.pipeTo(queueWritableStream(queue) as WritableStream)
    expect(await all(queueReadableStream(queue))).toEqual(items)
    await written
  })

  it('a cancelled Web reader leaves unread items in the queue', async () => {
    const queue = createBackpressureQueue<number>({ size: 8 })
    for (let item = 0; item < 4; item++) queue.put(item)
    const reader = queueReadableStream(queue).getReader()
    expect((await reader.read()).value).toBe(0)
    await reader.cancel()
    queue.close()
    expect(await all(queue)).toEqual([1, 2, 3])
  })

  it('a reader ends with the reason for which the writer was aborted', async () => {
    const queue = createBackpressureQueue<number>({ size: 8 })
    const writer = queueWritableStream(queue).getWriter()
    await writer.write(1)
    await writer.abort(new Error('no more'))
    await expect(all(queueReadableStream(queue))).rejects.toThrow('no more')
  })
})
