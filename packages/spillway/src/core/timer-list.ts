/**
 * Many timers of one and the same delay behind a single clock timer. Entries expire in the order
 * they were added, so a linked list is all the order there is: adding and removing cost a few
 * pointer writes, where a clock timer costs a heap and a handle. Nearly every timeout is armed and
 * disarmed without ever firing.
 */
import type { Clock, Timer } from './clock.js'
import { type Linked, LinkedList } from './linked-list.js'

class Entry implements Linked<Entry> {
  before: Entry | undefined
  after: Entry | undefined
  #armed = true

  constructor(
    readonly list: TimerList,
    readonly dueMs: number,
    readonly run: () => void,
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

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock
    this.#delayMs = delayMs
  }

  /**
   * Like `clock.schedule`, counted from `fromMs` if given, a moment ago; cheap when `delayMs` is the
   * list's own.
   */
  schedule(
    delayMs: number,
    run: () => void,
    fromMs: number = this.#clock.now(),
  ): Pick<Timer, 'cancel'> {
    const dueMs = fromMs + delayMs
    if (delayMs !== this.#delayMs) return this.#clock.schedule(dueMs - this.#clock.now(), run)
    const entry = new Entry(this, dueMs, run)
    if (this.#timer === undefined) this.#arm(dueMs - this.#clock.now())
    else if (this.#entries.length === 0) this.#timer.ref()
    this.#entries.push(entry)
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

  #arm(delayMs: number): void {
    this.#timer = this.#clock.schedule(delayMs, () => this.#fire())
  }

  /** Runs what is due, then sleeps until the next entry is: earlier ones may have been removed. */
  #fire(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    let entry = this.#entries.first
    while (entry !== undefined && entry.dueMs <= now) {
      entry.cancel()
      entry.run()
      entry = this.#entries.first
    }
    if (entry !== undefined && this.#timer === undefined) this.#arm(entry.dueMs - now)
  }
}
