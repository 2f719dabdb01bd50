/**
 * Drops calls that have waited for the queue timeout. It is the same for all calls, so they expire in the order
 * in which they joined, and one timer for the first of them is enough.
 */
import type { Clock } from '../../core/time/clock.js'
import { type Timed, TimerList } from '../../core/time/timer-list.js'
import { CallDeque } from './deque.js'
import type { QueuedCall } from './queued-call.js'

export class QueueTimeout implements Timed {
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  fromMs = 0
  readonly #clock: Clock
  readonly #timers: TimerList
  readonly #calls = new CallDeque()
  readonly #expire: (call: QueuedCall) => void

  constructor(clock: Clock, timeoutMs: number, expire: (call: QueuedCall) => void) {
    this.#clock = clock
    this.#timers = new TimerList(clock, timeoutMs)
    this.#expire = expire
  }

  /** The call that has waited longest, on a round trip or not. */
  get oldest(): QueuedCall | undefined {
    return this.#calls.first
  }

  add(call: QueuedCall): void {
    this.#calls.push(call)
    if (!this.timed) this.#sleep()
  }

  /** One of the added calls was removed. */
  forget(): void {
    this.#calls.forget()
    if (this.#calls.length === 0) this.#timers.remove(this)
  }

  onTimeUp(): void {
    const nowMs = this.#clock.now()
    // The timer list's own expression: a rounding difference would make it fire for ever.
    const isDue = (call: QueuedCall) => call.joinedMs + this.#timers.delayMs <= nowMs
    for (let { first } = this.#calls; first !== undefined && isDue(first); ) {
      this.#expire(first)
      first = this.#calls.first
    }
    if (!this.timed) this.#sleep()
  }

  close(): void {
    this.#timers.close()
  }

  /** May fire too early, because the first call has left meanwhile; then it sleeps again. */
  #sleep(): void {
    const { first } = this.#calls
    if (first === undefined) return
    this.fromMs = first.joinedMs
    this.#timers.add(this)
  }
}
