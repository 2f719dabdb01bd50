/**
 * Many timers of one and the same delay behind a single clock timer. Entries expire in the order
 * they were added, but for a few that count from a moment ago, so a linked list is all the order
 * there is: adding and removing cost a few pointer writes, where a clock timer costs a heap and a
 * handle. Nearly every timeout is armed and disarmed without ever firing.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock, Timer } from './clock.js'
import { type Linked, LinkedList } from './linked-list.js'

/**
 * The shared timer belongs to no request. Armed inside of one it would fire all entries in that
 * request's async context, and keep that context for as long as there is traffic.
 */
const outsideOfRequests = AsyncLocalStorage.snapshot()

class Entry implements Linked<Entry> {
  before: Entry | undefined
  after: Entry | undefined
  #armed = true

  constructor(
    readonly list: TimerList,
    readonly dueMs: number,
    readonly run: (about: never) => void,
    readonly about: unknown,
  ) {}

  cancel(): void {
    if (!this.#armed) return
    this.#armed = false
    this.list.remove(this)
  }
}

export class TimerList {
  readonly #clock: Clock
  readonly #delayMs: number
  readonly #entries = new LinkedList<Entry>()
  /**
   * Left armed when the list runs empty, because the next entry usually comes before it would fire;
   * meanwhile it is unreferenced, so that it does not keep the process alive.
   */
  #timer: Timer | undefined
  #timerDueMs = 0
  #firing = false

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock
    this.#delayMs = delayMs
  }

  /**
   * Like `clock.schedule`, counted from `fromMs` if given, a moment ago; cheap when `delayMs` is the
   * list's own. `run` is given `about`, so that many entries can share one function.
   */
  schedule<T>(
    delayMs: number,
    run: (about: T) => void,
    fromMs: number = this.#clock.now(),
    about?: T,
  ): Pick<Timer, 'cancel'> {
    const dueMs = fromMs + delayMs
    if (delayMs !== this.#delayMs) {
      return this.#clock.schedule(dueMs - this.#clock.now(), () => run(about as T))
    }
    const entry = new Entry(this, dueMs, run as (about: never) => void, about)
    let previous = this.#entries.last
    while (previous !== undefined && previous.dueMs > dueMs) previous = previous.before
    this.#entries.insertAfter(previous, entry)
    if (!this.#firing) this.#ensureTimer()
    return entry
  }

  /** For entries only; others call `cancel` on what `schedule` returned. */
  remove(entry: Entry): void {
    this.#entries.remove(entry)
    if (this.#entries.length === 0) this.#timer?.unref()
  }

  /** Disarms everything. */
  close(): void {
    while (this.#entries.first !== undefined) this.#entries.first.cancel()
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** A timer that fires when the first entry is due, or before. */
  #ensureTimer(): void {
    const first = this.#entries.first
    if (first === undefined) return
    if (this.#timer !== undefined && this.#timerDueMs <= first.dueMs) {
      if (this.#entries.length === 1) this.#timer.ref()
      return
    }
    this.#timer?.cancel()
    this.#timerDueMs = first.dueMs
    const leftMs = first.dueMs - this.#clock.now()
    this.#timer = outsideOfRequests(() => this.#clock.schedule(leftMs, () => this.#fire()))
  }

  /** Runs what is due, then sleeps until the next entry is: earlier ones may have been removed. */
  #fire(): void {
    this.#timer = undefined
    this.#firing = true
    const now = this.#clock.now()
    for (
      let entry = this.#entries.first;
      entry !== undefined && entry.dueMs <= now;
      entry = this.#entries.first
    ) {
      entry.cancel()
      entry.run(entry.about as never)
    }
    this.#firing = false
    this.#ensureTimer()
  }
}
