/**
 * Calls that wait for a busy mechanism, first come, first served. A waiting call leaves the list
 * when it is admitted, when its longest wait has passed, when it is aborted, or when the list is
 * closed. Its timer and its abort listener are removed with it.
 */
import { onAbort } from '../abort.js'
import type { Clock, Timer } from '../time/clock.js'
import { TimerList } from '../time/timer-list.js'
import { type Linked, LinkedList } from './linked-list.js'

export interface WaitOptions<W> {
  /** Longest wait in milliseconds. Default: no limit. */
  maxWaitMs?: number | undefined
  /** How much of the mechanism the call takes. Default: 1. */
  cost?: number
  signal?: AbortSignal | undefined
  /** Data that the mechanism needs about the call when its turn comes. */
  request?: W
}

/** One waiting call. */
export class WaitListEntry<W> implements Linked<WaitListEntry<W>> {
  before: WaitListEntry<W> | undefined
  after: WaitListEntry<W> | undefined
  readonly cost: number
  readonly sinceMs: number
  readonly request: W
  waiting = true
  timer: Pick<Timer, 'cancel'> | undefined
  forgetSignal: (() => void) | undefined
  resolve!: (admitted: boolean) => void
  reject!: (reason: unknown) => void

  constructor(cost: number, sinceMs: number, request: W) {
    this.cost = cost
    this.sinceMs = sinceMs
    this.request = request
  }
}

export class WaitList<W = undefined> {
  readonly #clock: Clock
  readonly #waiters = new LinkedList<WaitListEntry<W>>()
  readonly #timers: TimerList
  readonly #serve: (() => void) | undefined
  readonly #mayTimeOut: (request: W) => boolean
  #cost = 0

  /**
   * `usualMaxWaitMs`: the longest wait that most calls have; timers of that length are cheap.
   *
   * `serve` is called before a call times out, so that it can still be admitted in the last moment.
   * It is called again after a call has left, because the next one may need less.
   *
   * A call for which `mayTimeOut` returns false is not timed out; the mechanism dismisses it.
   */
  constructor(
    clock: Clock,
    usualMaxWaitMs: number,
    serve?: () => void,
    mayTimeOut: (request: W) => boolean = () => true,
  ) {
    this.#clock = clock
    this.#timers = new TimerList(clock, usualMaxWaitMs)
    this.#serve = serve
    this.#mayTimeOut = mayTimeOut
  }

  get length(): number {
    return this.#waiters.length
  }

  /** The sum of the costs of all waiting calls. */
  get cost(): number {
    return this.#cost
  }

  get head(): WaitListEntry<W> | undefined {
    return this.#waiters.first
  }

  /** The first calls of the list, at most `most`. */
  first(most: number): WaitListEntry<W>[] {
    const found: WaitListEntry<W>[] = []
    for (let each = this.head; each !== undefined && found.length < most; each = each.after) {
      found.push(each)
    }
    return found
  }

  /** Resolves with true if admitted and false if dismissed; rejects on abort and on close. */
  join({ maxWaitMs, cost = 1, signal, request }: WaitOptions<W>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const waiter = new WaitListEntry(cost, this.#clock.now(), request as W)
      waiter.resolve = resolve
      waiter.reject = reject
      if (maxWaitMs !== undefined) {
        waiter.timer = this.#timers.schedule(maxWaitMs, () => this.#timeOut(waiter))
      }
      if (signal !== undefined) {
        waiter.forgetSignal = onAbort(signal, () => this.#abort(waiter, signal.reason))
      }
      this.#waiters.push(waiter)
      this.#cost += cost
    })
  }

  admit(waiter: WaitListEntry<W>): void {
    this.#remove(waiter)
    waiter.resolve(true)
  }

  /** Dismisses a call before its longest wait has passed, because waiting longer cannot help it. */
  dismiss(waiter: WaitListEntry<W>): void {
    this.#remove(waiter)
    waiter.resolve(false)
  }

  fail(waiter: WaitListEntry<W>, error: unknown): void {
    this.#remove(waiter)
    waiter.reject(error)
  }

  /** Rejects all waiting calls and cancels their timers. */
  close(createError: () => unknown): void {
    for (let waiter = this.head; waiter !== undefined; waiter = this.head) {
      this.fail(waiter, createError())
    }
    this.#timers.close()
  }

  #timeOut(waiter: WaitListEntry<W>): void {
    this.#serve?.()
    if (!waiter.waiting || !this.#mayTimeOut(waiter.request)) return
    this.dismiss(waiter)
    this.#serve?.()
  }

  #abort(waiter: WaitListEntry<W>, reason: unknown): void {
    this.fail(waiter, reason)
    this.#serve?.()
  }

  #remove(waiter: WaitListEntry<W>): void {
    waiter.waiting = false
    this.#waiters.remove(waiter)
    this.#cost -= waiter.cost
    waiter.timer?.cancel()
    waiter.forgetSignal?.()
  }
}
