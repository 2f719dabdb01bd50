/**
 * Estimates when a full queue will have drained, for the wait that a refused caller is asked for. If all slots are in
 * use: the waiting calls times the usual duration of a call, divided by the calls that run. If something else holds
 * the calls back, such as a pace: by the rate at which waiting calls have started. The estimate varies at random, so
 * that refused callers do not come back at the same moment.
 */
import type { Random } from '../core/random.js'

/** The estimate before it is varied. A shorter wait would only produce more refusals. */
const SHORTEST_MS = 125
/** Nothing is known about a queue that long from now. Clients also ignore waits of more than 60 seconds. */
const LONGEST_MS = 50_000
/** Used until a call has ended or a waiting call has started. */
const UNKNOWN_MS = 1_000
/** The estimate is multiplied by 1 plus or minus this. */
const JITTER = 0.2
/** Weight of the newest duration in the moving average. */
const WEIGHT = 1 / 8
/** Starts are counted over this time and the one before. */
const PERIOD_MS = 10_000

export class DrainTime {
  readonly #random: Random
  /** No call has ended yet. */
  isUnknown = true
  /** Usual duration of a call. */
  #usualMs = 0
  #lastEndMs = Number.NEGATIVE_INFINITY
  /** Since when calls have been waiting without interruption. */
  #waitingSinceMs: number | undefined
  /** Starts of waiting calls, and since when they are counted; then those of the period before. */
  #starts = 0
  #countedSinceMs = 0
  #startsBefore = 0
  #countedBeforeMs = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** A call has ended and freed its slot. */
  ended(nowMs: number, durationMs: number): void {
    this.#usualMs = this.isUnknown
      ? durationMs
      : this.#usualMs + (durationMs - this.#usualMs) * WEIGHT
    this.#lastEndMs = nowMs
    this.isUnknown = false
  }

  /** A call begins to wait; `alone`: no other call waits. */
  queued(nowMs: number, alone: boolean): void {
    if (!alone) return
    this.#waitingSinceMs = nowMs
    this.#startsBefore = 0
    this.#countedBeforeMs = 0
    this.#starts = 0
    this.#countedSinceMs = nowMs
  }

  /** A waiting call starts. */
  started(): void {
    this.#starts++
  }

  /** `running`: the calls that use all slots; 0 if calls wait for something else. */
  retryAfterMs(nowMs: number, waiting: number, running: number): number {
    const estimateMs =
      running > 0 ? this.#bySlots(nowMs, waiting, running) : this.#byStarts(nowMs, waiting)
    const jitter = 1 - JITTER + this.#random() * 2 * JITTER
    return Math.round(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, estimateMs)) * jitter)
  }

  #bySlots(nowMs: number, waiting: number, running: number): number {
    const stalledMs = Math.min(this.#waitingMs(nowMs), nowMs - this.#lastEndMs)
    if (this.isUnknown) return Math.max(UNKNOWN_MS, stalledMs)
    // If no call has ended for longer than calls usually take, they take longer now.
    return (waiting * Math.max(this.#usualMs, stalledMs)) / running
  }

  #byStarts(nowMs: number, waiting: number): number {
    const starts = this.#starts + this.#startsBefore
    const countedMs = nowMs - this.#countedSinceMs + this.#countedBeforeMs
    if (nowMs - this.#countedSinceMs >= PERIOD_MS) {
      this.#startsBefore = this.#starts
      this.#countedBeforeMs = nowMs - this.#countedSinceMs
      this.#starts = 0
      this.#countedSinceMs = nowMs
    }
    return starts === 0
      ? Math.max(UNKNOWN_MS, this.#waitingMs(nowMs))
      : (waiting * countedMs) / starts
  }

  #waitingMs(nowMs: number): number {
    return this.#waitingSinceMs === undefined ? 0 : nowMs - this.#waitingSinceMs
  }
}
