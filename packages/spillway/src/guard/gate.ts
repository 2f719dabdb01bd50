/** What the dispatcher knows of one lane. */
import type { Timer } from '../core/clock.js'
import { ASK_AGAIN_MS } from '../shared/rate-limiter/pause.js'
import type { Entry } from './room.js'
import type { Wish } from './wish.js'

export class Gate {
  readonly lane: string
  /** The store is being asked: one trip at a time. */
  underWay = false
  /** Who is on the trip. */
  asking: Entry<Wish>[] = []
  /** Until then the next in turn has to wait; a pause is for everybody. */
  blockedUntilMs = Number.NEGATIVE_INFINITY
  paused = false
  /** Of a pause: from then on the store is asked again. */
  askAgainMs = Number.POSITIVE_INFINITY
  /** When the store said so, of whom, and what it wanted. */
  blockedAtMs = Number.NEGATIVE_INFINITY
  blocker: Entry<Wish> | undefined
  blockedFor: readonly number[] = []
  timer: Timer | undefined
  /** When that timer fires. */
  timerDueMs = 0
  lostTrips = 0

  constructor(lane: string) {
    this.lane = lane
  }

  isBlocked(nowMs: number): boolean {
    return this.blockedUntilMs > nowMs && this.askAgainMs > nowMs
  }

  /** When it is no longer blocked, or it is time to ask. */
  get wakeMs(): number {
    return Math.min(this.blockedUntilMs, this.askAgainMs)
  }

  pauseUntil(untilMs: number, nowMs: number): void {
    this.blockedUntilMs = untilMs
    this.paused = true
    this.askAgainMs = nowMs + ASK_AGAIN_MS
  }

  unblock(): void {
    this.blockedUntilMs = Number.NEGATIVE_INFINITY
    this.paused = false
    this.askAgainMs = Number.POSITIVE_INFINITY
    this.blocker = undefined
  }
}
