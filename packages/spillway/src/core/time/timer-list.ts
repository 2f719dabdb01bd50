/**
 * Many timers of one and the same delay behind a single clock timer. Entries expire in the order
 * they were added, but for a few that count from a moment ago, so a linked list is all the order
 * there is: adding and removing cost a few pointer writes, where a clock timer costs a heap and a
 * handle. Nearly every timeout is armed and disarmed without ever firing.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { gathering } from '../next-tick-batch.js'
import type { Clock, Timer } from './clock.js'

/**
 * The shared timer belongs to no request. Armed inside of one it would fire all entries in that
 * request's async context, and keep that context for as long as there is traffic.
 */
const outsideOfRequests = AsyncLocalStorage.snapshot()

/** Something whose time will be up. Its place in the list is in itself: there are very many. */
export interface Timed {
  /** Its neighbours in the list. */
  sooner: Timed | undefined
  later: Timed | undefined
  /** Whether it is in a list; that is the list's to say. */
  timed: boolean
  /** From when its time counts: now, or a moment ago. */
  readonly fromMs: number
  onTimeUp(): void
}

/** For those who have no place for it. */
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
 * Lists that ran empty, dealt with together: not each at once, because nearly all are filled again
 * soon. When the process has nothing else to do is early enough.
 */
const emptied: TimerList[] = []
const letGoSoon = gathering(() => {
  for (const list of emptied) list.letGo()
  emptied.length = 0
})

export class TimerList {
  /** The delay that is cheap. */
  readonly delayMs: number
  readonly #clock: Clock
  readonly #mayKeepAlive: boolean
  #first: Timed | undefined
  #last: Timed | undefined
  /**
   * Left armed when the list runs empty, because the next entry usually comes before it would fire;
   * meanwhile it is unreferenced, so that it does not keep the process alive.
   */
  #timer: Timer | undefined
  #timerDueMs = 0
  #keepsAlive = true
  #firing = false
  /** Among those that ran empty. */
  #emptied = false

  /** With `keepsAlive: false` the process may end although something is in the list. */
  constructor(clock: Clock, delayMs: number, { keepsAlive = true } = {}) {
    this.delayMs = delayMs
    this.#clock = clock
    this.#mayKeepAlive = keepsAlive
  }

  /** Like `clock.schedule`; cheap when `delayMs` is the list's own. */
  schedule(delayMs: number, run: () => void): Pick<Timer, 'cancel'> {
    if (delayMs !== this.delayMs) return this.#clock.schedule(delayMs, run)
    const entry = new Entry(this, this.#clock.now(), run)
    this.add(entry)
    return entry
  }

  /** Its time is up after the list's delay. */
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
    // One that is not the first is later than the one there is a timer for.
    if (sooner === undefined && !this.#firing) this.#ensureTimer()
  }

  /** It may have been removed before. */
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
    letGoSoon()
  }

  /** Disarms everything. */
  close(): void {
    while (this.#first !== undefined) this.remove(this.#first)
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** If it still is empty, the process may end although its timer is armed. */
  letGo(): void {
    this.#emptied = false
    if (this.#first !== undefined || !this.#keepsAlive) return
    this.#keepsAlive = false
    this.#timer?.unref()
  }

  /** A timer that fires when the first entry is due, or before. */
  #ensureTimer(): void {
    if (this.#first === undefined) return
    const dueMs = this.#first.fromMs + this.delayMs
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) {
      if (!this.#keepsAlive && this.#mayKeepAlive) this.#timer.ref()
    } else {
      this.#timer?.cancel()
      this.#timerDueMs = dueMs
      const leftMs = dueMs - this.#clock.now()
      this.#timer = outsideOfRequests(() => this.#clock.schedule(leftMs, () => this.#fire()))
      if (!this.#mayKeepAlive) this.#timer.unref()
    }
    this.#keepsAlive = this.#mayKeepAlive
  }

  /** Runs what is due, then sleeps until the next entry is: earlier ones may have been removed. */
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
      // Also those that were due behind one that threw: at once.
      this.#ensureTimer()
    }
  }
}
