/**
 * The line in front of a mechanism that is busy: first come, first served. A waiter leaves it by
 * being admitted, by losing patience, by abort (at once, wherever it stands) or when the line is
 * closed, and takes its timer and its listener along.
 */
import { onAbort } from '../abort.js'
import type { Clock, Timer } from '../time/clock.js'
import { TimerList } from '../time/timer-list.js'
import { type Linked, LinkedList } from './linked-list.js'

export interface WaitOptions<W> {
  /** Longest wait in milliseconds; without it somebody else has to end it. */
  patienceMs?: number | undefined
  /** What the waiter asks for. Default: 1. */
  cost?: number
  signal?: AbortSignal | undefined
  /** Whatever the mechanism wants to know about the waiter when its turn comes. */
  wish?: W
}

/** One place in line. */
export class Waiter<W> implements Linked<Waiter<W>> {
  before: Waiter<W> | undefined
  after: Waiter<W> | undefined
  readonly cost: number
  readonly sinceMs: number
  readonly wish: W
  waiting = true
  timer: Pick<Timer, 'cancel'> | undefined
  forgetSignal: (() => void) | undefined
  resolve!: (admitted: boolean) => void
  reject!: (reason: unknown) => void

  constructor(cost: number, sinceMs: number, wish: W) {
    this.cost = cost
    this.sinceMs = sinceMs
    this.wish = wish
  }
}

export class Line<W = undefined> {
  readonly #clock: Clock
  readonly #waiters = new LinkedList<Waiter<W>>()
  readonly #timers: TimerList
  readonly #serve: (() => void) | undefined
  readonly #mayLeave: (wish: W) => boolean
  #cost = 0

  /**
   * `usualPatienceMs` is the patience that is cheap. `serve` is called before somebody loses
   * patience, to admit whoever can be in the last moment, and after somebody left, because the new
   * head of the line may want less. Who may not leave although its patience has run out is for the
   * mechanism to dismiss.
   */
  constructor(
    clock: Clock,
    usualPatienceMs: number,
    serve?: () => void,
    mayLeave: (wish: W) => boolean = () => true,
  ) {
    this.#clock = clock
    this.#timers = new TimerList(clock, usualPatienceMs)
    this.#serve = serve
    this.#mayLeave = mayLeave
  }

  get length(): number {
    return this.#waiters.length
  }

  /** What all waiters together ask for. */
  get cost(): number {
    return this.#cost
  }

  get head(): Waiter<W> | undefined {
    return this.#waiters.first
  }

  /** Those at the head of the line, at most so many. */
  first(most: number): Waiter<W>[] {
    const found: Waiter<W>[] = []
    for (let each = this.head; each !== undefined && found.length < most; each = each.after) {
      found.push(each)
    }
    return found
  }

  /** True once admitted, false when sent away; rejects on abort and on close. */
  join({ patienceMs, cost = 1, signal, wish }: WaitOptions<W>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const waiter = new Waiter(cost, this.#clock.now(), wish as W)
      waiter.resolve = resolve
      waiter.reject = reject
      if (patienceMs !== undefined) {
        waiter.timer = this.#timers.schedule(patienceMs, () => this.#loseOne(waiter))
      }
      if (signal !== undefined) {
        waiter.forgetSignal = onAbort(signal, () => this.#abort(waiter, signal.reason))
      }
      this.#waiters.push(waiter)
      this.#cost += cost
    })
  }

  admit(waiter: Waiter<W>): void {
    this.#remove(waiter)
    waiter.resolve(true)
  }

  /** Sends a waiter away before its patience has run out: it would wait in vain. */
  dismiss(waiter: Waiter<W>): void {
    this.#remove(waiter)
    waiter.resolve(false)
  }

  /** Fails one waiter. */
  fail(waiter: Waiter<W>, error: unknown): void {
    this.#remove(waiter)
    waiter.reject(error)
  }

  /** Sends everybody away and leaves no timer behind. */
  close(createError: () => unknown): void {
    for (let waiter = this.head; waiter !== undefined; waiter = this.head) {
      this.fail(waiter, createError())
    }
    this.#timers.close()
  }

  #loseOne(waiter: Waiter<W>): void {
    this.#serve?.()
    if (!waiter.waiting || !this.#mayLeave(waiter.wish)) return
    this.dismiss(waiter)
    this.#serve?.()
  }

  #abort(waiter: Waiter<W>, reason: unknown): void {
    this.fail(waiter, reason)
    this.#serve?.()
  }

  #remove(waiter: Waiter<W>): void {
    waiter.waiting = false
    this.#waiters.remove(waiter)
    this.#cost -= waiter.cost
    waiter.timer?.cancel()
    waiter.forgetSignal?.()
  }
}
