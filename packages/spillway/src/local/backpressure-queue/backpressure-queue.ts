/**
 * A bounded queue between producers and slower consumers. Producers wait once it holds
 * `highWatermark` items, and continue when at most `lowWatermark` are left. Items come out in the
 * order in which they went in. For calls to a downstream use a guard; this is for items on their
 * way through the process.
 */
import { onAbort } from '../../core/abort.js'
import { closedError, counted, type Details, refuse, SpillwayError } from '../../core/errors.js'
import {
  integer,
  type OptionProblem,
  object,
  optional,
  text,
  together,
  validate,
} from '../../core/options/checks.js'
import { Ring } from './ring.js'

/** Options of `createBackpressureQueue()`. */
export interface BackpressureQueueOptions {
  /** Name in errors. Default: `queue`. */
  name?: string
  /** Most items it holds. Range: integers from 1. */
  size: number
  /** Number of items from which producers wait. Range: 1 to `size`. Default: 0.8 of `size`. */
  highWatermark?: number
  /**
   * Number of items at which producers continue. Range: from 0, below `highWatermark`. Default: a quarter of
   * `highWatermark`.
   */
  lowWatermark?: number
  /** Most producers that may wait, each with its item. Range: integers from 0. Default: 1,000. */
  maxWaiting?: number
}

/** State of a backpressure queue. */
export interface QueueSnapshot {
  /** Name in errors, events and snapshots. */
  name: string
  /** Items that wait. */
  length: number
  /** Items that may wait. */
  size: number
  /** Whether producers wait. */
  paused: boolean
  /** Producers that wait for space. */
  producers: number
  /** Consumers that wait for items. */
  consumers: number
  /** Whether the queue is closed. */
  closed: boolean
}

/** A bounded queue whose producers wait while it is full. Created by `createBackpressureQueue()`. */
export interface BackpressureQueue<T> extends AsyncIterable<T> {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Items that are waiting. */
  readonly length: number
  /** Whether producers wait. */
  readonly paused: boolean
  /**
   * Puts an item in. Returns undefined if that succeeded at once. Otherwise returns a promise that
   * resolves when the item is in. It rejects with the signal's reason, SHUTTING_DOWN, or QUEUE_FULL if too
   * many producers wait.
   */
  put(item: T, options?: { signal?: AbortSignal }): Promise<void> | undefined
  /**
   * Puts an item in without waiting and returns whether it fitted. Works up to `size`, even while
   * paused.
   */
  offer(item: T): boolean
  /** The next item once there is one; done when the queue is closed and empty. */
  take(options?: { signal?: AbortSignal }): Promise<IteratorResult<T, undefined>>
  /**
   * Accepts no more items. Waiting producers are refused with SHUTTING_DOWN; items in the queue come out.
   * With `error`, consumers get that error at the end.
   */
  close(error?: unknown): void
  /** State and counts at this moment. */
  snapshot(): QueueSnapshot
}

const readOptions = together(
  object({
    name: optional(text(), 'queue'),
    size: integer({ min: 1 }),
    highWatermark: optional(integer({ min: 1 })),
    lowWatermark: optional(integer({ min: 0 })),
    maxWaiting: optional(integer({ min: 0 }), 1_000),
  }),
  ({ size, highWatermark = size, lowWatermark = 0 }, path, problems: OptionProblem[]) => {
    if (highWatermark > size) {
      const message = `must not be above size, which is ${size}`
      problems.push({ path: `${path}.highWatermark`, message })
    }
    if (lowWatermark >= highWatermark) {
      const message = `must be below highWatermark, which is ${highWatermark}`
      problems.push({ path: `${path}.lowWatermark`, message })
    }
  },
)

/**
 * Creates a bounded queue whose producers wait while it is full.
 *
 * @example
 * const queue = createBackpressureQueue<Row>({ size: 1_000 })
 * await queue.put(row)
 * for await (const next of queue) await insert(next)
 */
export function createBackpressureQueue<T>(
  options: BackpressureQueueOptions,
): BackpressureQueue<T> {
  return new WatermarkQueue<T>(validate('backpressureQueue', options, readOptions))
}

/** A waiting producer. */
interface Producer<T> {
  readonly item: T
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  forget: (() => void) | undefined
}

interface Consumer<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
  forget: (() => void) | undefined
}

/** A fixed wait, because the speed of consumers is not measured. */
const FULL_WAIT_MS = 1_000

const DONE: IteratorResult<never, undefined> = Object.freeze({ done: true, value: undefined })

class WatermarkQueue<T> implements BackpressureQueue<T> {
  readonly name: string
  paused = false
  readonly #size: number
  readonly #high: number
  readonly #low: number
  readonly #maxWaiting: number
  readonly #items = new Ring<T>()
  readonly #producers = new Ring<Producer<T>>()
  readonly #consumers = new Ring<Consumer<T>>()
  #closed: { error: unknown; failed: boolean } | undefined

  constructor({
    name,
    size,
    highWatermark,
    lowWatermark,
    maxWaiting,
  }: ReturnType<typeof readOptions>) {
    this.name = name
    this.#size = size
    this.#high = highWatermark ?? Math.max(1, Math.floor(size * 0.8))
    this.#low = lowWatermark ?? Math.floor(this.#high / 4)
    this.#maxWaiting = maxWaiting
  }

  get length(): number {
    return this.#items.length
  }

  put(item: T, options?: { signal?: AbortSignal }): Promise<void> | undefined {
    const signal = options?.signal
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#closed !== undefined) return refuse(closedError('queue', this.name))
    if (!this.paused) {
      this.#add(item)
      return undefined
    }
    if (this.#producers.length >= this.#maxWaiting) return refuse(this.#fullError())
    return new Promise((resolve, reject) => {
      const producer: Producer<T> = { item, resolve, reject, forget: undefined }
      if (signal !== undefined) {
        producer.forget = onAbort(signal, () => {
          this.#producers.remove(producer)
          reject(signal.reason)
        })
      }
      this.#producers.push(producer)
    })
  }

  offer(item: T): boolean {
    if (this.#closed !== undefined || this.#items.length >= this.#size) return false
    // Waiting producers came first.
    if (this.#producers.length > 0) return false
    this.#add(item)
    return true
  }

  take(options?: { signal?: AbortSignal }): Promise<IteratorResult<T, undefined>> {
    const signal = options?.signal
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#items.length > 0) {
      return Promise.resolve({ done: false, value: this.#next() })
    }
    if (this.#closed !== undefined) return this.#end(this.#closed)
    return new Promise((resolve, reject) => {
      const consumer: Consumer<T> = { resolve, reject, forget: undefined }
      if (signal !== undefined) {
        consumer.forget = onAbort(signal, () => {
          this.#consumers.remove(consumer)
          reject(signal.reason)
        })
      }
      this.#consumers.push(consumer)
    })
  }

  /**
   * Several loops may share one queue, so leaving a loop neither takes items nor closes the queue.
   */
  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return { next: () => this.take(), return: () => Promise.resolve(DONE) }
  }

  close(...error: [] | [unknown]): void {
    if (this.#closed !== undefined) return
    this.#closed = { error: error[0], failed: error.length > 0 && error[0] !== undefined }
    while (this.#producers.length > 0) {
      const { reject, forget } = this.#producers.shift()
      forget?.()
      reject(closedError('queue', this.name))
    }
    // Waiting consumers see the end of the queue.
    while (this.#consumers.length > 0) {
      const { resolve, reject, forget } = this.#consumers.shift()
      forget?.()
      if (this.#closed.failed) reject(this.#closed.error)
      else resolve(DONE)
    }
  }

  snapshot(): QueueSnapshot {
    const { name, length, paused } = this
    const waiting = { producers: this.#producers.length, consumers: this.#consumers.length }
    return {
      name,
      length,
      size: this.#size,
      paused,
      ...waiting,
      closed: this.#closed !== undefined,
    }
  }

  /** Passes the item to a waiting consumer, or stores it. */
  #add(item: T): void {
    if (this.#consumers.length > 0) {
      const { resolve, forget } = this.#consumers.shift()
      forget?.()
      resolve({ done: false, value: item })
      return
    }
    this.#items.push(item)
    if (this.#items.length >= this.#high) this.paused = true
  }

  #next(): T {
    const item = this.#items.shift()
    if (this.paused && this.#items.length <= this.#low) this.#resume()
    return item
  }

  /** Lets waiting producers in until `highWatermark` is reached again. */
  #resume(): void {
    this.paused = false
    while (!this.paused && this.#producers.length > 0) {
      const { item, resolve, forget } = this.#producers.shift()
      forget?.()
      this.#add(item)
      resolve()
    }
  }

  #end({
    error,
    failed,
  }: {
    error: unknown
    failed: boolean
  }): Promise<IteratorResult<T, undefined>> {
    return failed ? refuse(error) : Promise.resolve(DONE)
  }

  #fullError(): SpillwayError {
    const details = { name: this.name, waiting: this.#producers.length, length: this.length }
    return new SpillwayError({
      code: 'QUEUE_FULL',
      stage: 'queue',
      scope: 'local',
      retryAfterMs: FULL_WAIT_MS,
      details,
      explain,
    })
  }
}

function explain({ name, waiting, length }: Details): string {
  return `${name}: ${counted(length, 'items')} in the queue, and ${counted(waiting, 'producers')} already waiting (maxWaiting)`
}
