/**
 * The line in front of a mechanism that is busy: first come, first served. A waiter leaves it by
 * being admitted, by losing patience, by abort (at once, wherever it stands) or when the line is
 * closed, and takes its timer and its listener along.
 */
import { onAbort } from '../core/abort.js'
import type { Clock, Timer } from '../core/clock.js'
import { type Linked, LinkedList } from '../core/linked-list.js'
import { TimerList } from '../core/timer-list.js'

export interface WaitOptions {
  /** Longest wait in milliseconds. */
  patienceMs: number
  /** What the waiter asks for. Default: 1. */
  cost?: number
  signal?: AbortSignal | undefined
}

/** One place in line. */
export class Waiter implements Linked<Waiter> {
  before: Waiter | undefined
  after: Waiter | undefined
  readonly cost: number
  readonly sinceMs: number
  waiting = true
  timer: Pick<Timer, 'cancel'> | undefined
  forgetSignal: (() => void) | undefined
  resolve!: (admitted: boolean) => void
  reject!: (reason: unknown) => void

  constructor(cost: number, sinceMs: number) {
    this.cost = cost
    this.sinceMs = sinceMs
  }
}

export class Line {
  readonly #clock: Clock
  readonly #waiters = new LinkedList<Waiter>()
  readonly #timers: TimerList
  readonly #serve: (() => void) | undefined
  #cost = 0

  /**
   * `usualPatienceMs` is the patience that is cheap. `serve` is called before somebody loses
   * patience, to admit whoever can be in the last moment, and after somebody left, because the new
   * head of the line may want less.
   */
  constructor(clock: Clock, usualPatienceMs: number, serve?: () => void) {
    this.#clock = clock
    this.#timers = new TimerList(clock, usualPatienceMs)
    this.#serve = serve
  }

  get length(): number {
    return this.#waiters.length
  }

  /** What all waiters together ask for. */
  get cost(): number {
    return this.#cost
  }

  get head(): Waiter | undefined {
    return this.#waiters.first
  }

  /** True once admitted, false when patience ran out; rejects on abort and on close. */
  join({ patienceMs, cost = 1, signal }: WaitOptions): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const waiter = new Waiter(cost, this.#clock.now())
      waiter.resolve = resolve
      waiter.reject = reject
      waiter.timer = this.#timers.schedule(patienceMs, () => {
        this.#serve?.()
        if (waiter.waiting) this.#leave(waiter)
        resolve(false)
      })
      waiter.forgetSignal =
        signal &&
        onAbort(signal, () => {
          this.#leave(waiter)
          reject(signal.reason)
        })
      this.#waiters.push(waiter)
      this.#cost += cost
    })
  }

  /** Admits the head of the line. */
  admit(waiter: Waiter): void {
    this.#remove(waiter)
    waiter.resolve(true)
  }

  /** Sends everybody away and leaves no timer behind. */
  close(createError: () => unknown): void {
    for (let waiter = this.head; waiter !== undefined; waiter = this.head) {
      this.#remove(waiter)
      waiter.reject(createError())
    }
    this.#timers.close()
  }

  #leave(waiter: Waiter): void {
    this.#remove(waiter)
    this.#serve?.()
  }

  #remove(waiter: Waiter): void {
    waiter.waiting = false
    this.#waiters.remove(waiter)
    this.#cost -= waiter.cost
    waiter.timer?.cancel()
    waiter.forgetSignal?.()
  }
}
