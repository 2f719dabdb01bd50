/**
 * A clock whose time passes only when it is advanced, as fast as the machine can compute. Timers
 * fire in the order of their time, then of their arming. Between two timers all promises settle
 * that can, as in real time. The same program gives the same order in every run.
 */
import type { Clock, Timer } from '../core/time/clock.js'
import { runDueTimers } from './run-due-timers.js'
import { type HeapItem, TimerHeap } from './timer-heap.js'

/** Options of `createVirtualClock()`. */
export interface VirtualClockOptions {
  /** First value of `now()`. Range: any number. Default: 0. */
  startMs?: number
  /**
   * Time of day at the beginning, in milliseconds since 1970. Range: any number. Default: midnight, 1 January
   * 2030 UTC.
   */
  wallMs?: number
  /**
   * Uses fewer turns of the event loop, for long simulations. Promises and this library's own
   * `nextTick` callbacks have settled before the next timer fires; those of other code perhaps not.
   * Default: false.
   */
  quick?: boolean
}

/** A clock that only moves when a test moves it. Created by `createVirtualClock()`. */
export interface VirtualClock extends Clock {
  /**
   * Armed timers that keep a process alive. 0 after everything was closed, otherwise something
   * leaks.
   */
  readonly pending: number
  /** Timers fired so far. */
  readonly fired: number
  /** Lets this much time pass, with all timers that are due in it. */
  advance(ms: number): Promise<void>
  /**
   * Lets time pass, from timer to timer, until the promise is settled, and returns its result.
   * Fails if no timer is left that could settle it.
   */
  until<T>(promise: PromiseLike<T>): Promise<T>
  /** Lets time pass until no timer is armed that keeps the process alive. */
  drain(): Promise<void>
  /** Lets all promises settle that can, without passing time. */
  settle(): Promise<void>
}

/** Background timers that rearm themselves forever must not hang a test. */
const MOST_IDLE_EVENTS = 100_000

/**
 * Node runs immediates only when no microtask and no tick is left, regardless of the order in which they were
 * queued. Awaiting a fixed number of microtasks would be a guess.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

class VirtualTimer implements Timer, HeapItem {
  index = -1
  keepsAlive = true

  constructor(
    readonly clock: VirtualClockImpl,
    readonly dueMs: number,
    readonly order: number,
    readonly run: () => void,
  ) {}

  cancel(): void {
    if (this.index !== -1) this.clock.disarm(this)
  }

  ref(): void {
    if (this.keepsAlive) return
    this.keepsAlive = true
    if (this.index !== -1) this.clock.pending++
  }

  unref(): void {
    if (!this.keepsAlive) return
    this.keepsAlive = false
    if (this.index !== -1) this.clock.pending--
  }
}

class VirtualClockImpl implements VirtualClock {
  pending = 0
  fired = 0
  readonly #heap = new TimerHeap<VirtualTimer>()
  readonly #wallOffsetMs: number
  #nowMs: number
  readonly #quick: boolean
  #armed = 0

  constructor({ startMs = 0, wallMs = Date.UTC(2030, 0, 1), quick = false }: VirtualClockOptions) {
    if (!(startMs >= 0)) throw new RangeError('startMs: must be at least 0')
    this.#nowMs = startMs
    this.#quick = quick
    this.#wallOffsetMs = wallMs - startMs
  }

  now(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#wallOffsetMs + this.#nowMs
  }

  schedule(delayMs: number, run: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('schedule: the delay is not a number')
    const dueMs = this.#nowMs + Math.max(0, delayMs)
    const timer = new VirtualTimer(this, dueMs, this.#armed++, run)
    this.#heap.push(timer)
    this.pending++
    return timer
  }

  pollTurn(run: () => void): void {
    this.schedule(0, run)
  }

  disarm(timer: VirtualTimer): void {
    this.#heap.remove(timer)
    if (timer.keepsAlive) this.pending--
  }

  settle(): Promise<void> {
    return settle()
  }

  async advance(ms: number): Promise<void> {
    if (!(ms >= 0 && ms < Infinity))
      throw new RangeError(`advance: must be a finite number of at least 0, got ${ms}`)
    const untilMs = this.#nowMs + ms
    await this.#pass(() => {
      const next = this.#heap.first
      return next !== undefined && next.dueMs <= untilMs ? next : undefined
    })
    this.#nowMs = Math.max(this.#nowMs, untilMs)
  }

  drain(): Promise<void> {
    let events = 0
    return this.#pass(() => {
      if (this.pending === 0) return undefined
      if (events++ > MOST_IDLE_EVENTS) throw new Error('drain: the timers re-arm themselves')
      return this.#heap.first
    })
  }

  async until<T>(promise: PromiseLike<T>): Promise<T> {
    let settled = false
    const note = () => {
      settled = true
    }
    promise.then(note, note)
    let idleEvents = 0
    await this.#pass(() => {
      if (settled) return undefined
      // Background timers may settle it as well, but only a limited number of them is tried.
      idleEvents = this.pending > 0 ? 0 : idleEvents + 1
      const next = this.#heap.first
      if (next === undefined || idleEvents > MOST_IDLE_EVENTS) {
        throw new Error('until: no timer is left, so the promise never settles')
      }
      return next
    })
    return promise
  }

  /**
   * Fires the timers that `choose` returns, each after all promises have settled, until it returns
   * none.
   */
  async #pass(choose: () => VirtualTimer | undefined): Promise<void> {
    const fireNext = () => {
      const next = choose()
      if (next !== undefined) this.#fire(next)
      return next !== undefined
    }
    await settle()
    if (this.#quick) return runDueTimers(fireNext)
    while (fireNext()) await settle()
  }

  #fire(timer: VirtualTimer): void {
    this.fired++
    this.disarm(timer)
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
    timer.run()
  }
}

/**
 * Creates a clock that only moves when a test moves it.
 *
 * @example
 * const clock = createVirtualClock()
 * const spillway = createSpillway({ clock })
 * await clock.advance(30_000)
 */
export function createVirtualClock(options: VirtualClockOptions = {}): VirtualClock {
  return new VirtualClockImpl(options)
}
