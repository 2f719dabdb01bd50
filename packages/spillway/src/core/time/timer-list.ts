/**
 * Many timers with the same delay behind one clock timer. Nearly every timeout is armed and
 * cancelled without firing. Entries expire in the order in which they were added, except for a few
 * that count from a moment ago. So a linked list suffices: adding and removing take a few pointer
 * writes, while a clock timer needs a heap and a handle.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock, Timer } from './clock.js'
import { nextTickBatch } from './next-tick-batch.js'

/**
 * The shared timer belongs to no request. If it were armed in the async context of one, all entries
 * would fire in that context, and it would be kept alive for as long as there is traffic.
 */
const runOutsideRequests = AsyncLocalStorage.snapshot()

/** An item with a time limit. It is its own list node, because there are very many. */
export interface Timed {
  /** Its neighbours in the list. */
  sooner: Timed | undefined
  later: Timed | undefined
  /** Whether it is in a list. Set by the list. */
  timed: boolean
  /** When its delay began: now, or a moment ago. */
  readonly fromMs: number
  onTimeUp(): void
}

/** A list node for callers that pass a function only. */
class Entry implements Timed {
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false

  constructor(
    readonly list: TimerList,
    readonly fromMs: number,
    readonly onTimeUp: () => void,
  ) {}

  cancel(): void {
    this.list.remove(this)
  }
}

/**
 * Lists that became empty are handled together on the next tick, because most are filled again
 * soon.
 */
const emptied: TimerList[] = []
const unrefEmptyListsSoon = nextTickBatch(() => {
  for (const list of emptied) list.unrefIfEmpty()
  emptied.length = 0
})

export class TimerList {
  /** The delay of all entries. */
  readonly delayMs: number
  readonly #clock: Clock
  readonly #mayKeepAlive: boolean
  #first: Timed | undefined
  #last: Timed | undefined
  /**
   * Stays armed when the list becomes empty, because the next entry usually comes before it would
   * fire. Meanwhile it is unreferenced, so that it does not keep the process alive.
   */
  #timer: Timer | undefined
  #timerDueMs = 0
  #keepsAlive = true
  #firing = false
  /** Whether it is in `emptied`. */
  #emptied = false

  /** With `keepsAlive: false` the process may end although the list has entries. */
  constructor(clock: Clock, delayMs: number, { keepsAlive = true } = {}) {
    this.delayMs = delayMs
    this.#clock = clock
    this.#mayKeepAlive = keepsAlive
  }

  /** Like `clock.schedule`; cheap if `delayMs` is the list's own delay. */
  schedule(delayMs: number, run: () => void): Pick<Timer, 'cancel'> {
    if (delayMs !== this.delayMs) return this.#clock.schedule(delayMs, run)
    const entry = new Entry(this, this.#clock.now(), run)
    this.add(entry)
    return entry
  }

  /** Calls `onTimeUp` after the list's delay. */
  add(item: Timed): void {
    const { fromMs } = item
    item.timed = true
    let sooner = this.#last
    while (sooner !== undefined && sooner.fromMs > fromMs) sooner = sooner.sooner
    const later = sooner === undefined ? this.#first : sooner.later
    item.sooner = sooner
    item.later = later
    if (sooner === undefined) this.#first = item
    else sooner.later = item
    if (later === undefined) this.#last = item
    else later.sooner = item
    // Only a new first entry can be due earlier than the armed timer.
    if (sooner === undefined && !this.#firing) this.#ensureTimer()
  }

  /** Does nothing if the item was removed before. */
  remove(item: Timed): void {
    if (!item.timed) return
    item.timed = false
    const { sooner, later } = item
    if (sooner === undefined) this.#first = later
    else sooner.later = later
    if (later === undefined) this.#last = sooner
    else later.sooner = sooner
    item.sooner = undefined
    item.later = undefined
    if (this.#first === undefined && this.#mayKeepAlive) this.#ranEmpty()
  }

  #ranEmpty(): void {
    if (this.#emptied) return
    this.#emptied = true
    emptied.push(this)
    unrefEmptyListsSoon()
  }

  /** Cancels all entries. */
  close(): void {
    while (this.#first !== undefined) this.remove(this.#first)
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** If the list is still empty, its armed timer no longer keeps the process alive. */
  unrefIfEmpty(): void {
    this.#emptied = false
    if (this.#first !== undefined || !this.#keepsAlive) return
    this.#keepsAlive = false
    this.#timer?.unref()
  }

  /** Arms a timer that fires when the first entry is due, or earlier. */
  #ensureTimer(): void {
    if (this.#first === undefined) return
    const dueMs = this.#first.fromMs + this.delayMs
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) {
      if (!this.#keepsAlive && this.#mayKeepAlive) this.#timer.ref()
    } else {
      this.#timer?.cancel()
      this.#timerDueMs = dueMs
      const leftMs = dueMs - this.#clock.now()
      this.#timer = runOutsideRequests(() => this.#clock.schedule(leftMs, () => this.#fire()))
      if (!this.#mayKeepAlive) this.#timer.unref()
    }
    this.#keepsAlive = this.#mayKeepAlive
  }

  /** Runs the entries that are due, then sleeps until the next one. */
  #fire(): void {
    this.#timer = undefined
    this.#firing = true
    const now = this.#clock.now()
    try {
      for (
        let item = this.#first;
        item !== undefined && item.fromMs + this.delayMs <= now;
        item = this.#first
      ) {
        this.remove(item)
        item.onTimeUp()
      }
    } finally {
      this.#firing = false
      // If an entry threw, those due after it run at once.
      this.#ensureTimer()
    }
  }
}
