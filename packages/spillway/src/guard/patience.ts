/**
 * Sends away who has waited too long. That is as long for everybody, so those who came first are due
 * first, and one timer for the first of them is enough.
 */
import type { Clock } from '../core/time/clock.js'
import { type Timed, TimerList } from '../core/time/timer-list.js'
import type { Entry } from './entry.js'
import { EntryLine } from './entry-line.js'

export class Patience implements Timed {
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  fromMs = 0
  readonly #clock: Clock
  readonly #timers: TimerList
  readonly #line = new EntryLine()
  readonly #dismiss: (entry: Entry) => void

  constructor(clock: Clock, timeoutMs: number, dismiss: (entry: Entry) => void) {
    this.#clock = clock
    this.#timers = new TimerList(clock, timeoutMs)
    this.#dismiss = dismiss
  }

  add(entry: Entry): void {
    this.#line.push(entry)
    if (!this.timed) this.#sleep()
  }

  /** One of those who were added has gone. */
  forget(): void {
    this.#line.forget()
    if (this.#line.length === 0) this.#timers.remove(this)
  }

  onTimeUp(): void {
    const nowMs = this.#clock.now()
    // In the words of the list, to the last bit: one that it finds due and this does not would be due for ever.
    const isDue = (entry: Entry) => entry.enteredMs + this.#timers.delayMs <= nowMs
    for (let { first } = this.#line; first !== undefined && isDue(first); ) {
      this.#dismiss(first)
      first = this.#line.first
    }
    if (!this.timed) this.#sleep()
  }

  close(): void {
    this.#timers.close()
  }

  /** It may wake up too early, because the first one has left meanwhile; then it looks again. */
  #sleep(): void {
    const { first } = this.#line
    if (first === undefined) return
    this.fromMs = first.enteredMs
    this.#timers.add(this)
  }
}
