/** What the dispatcher knows of one lane. */
import type { Timer } from '../core/time/clock.js'
import type { Waiting } from './wish.js'

export class Gate {
  readonly lane: string
  /** The store is being asked: one trip at a time. */
  underWay = false
  /** Who is on the trip. */
  asking: Waiting[] = []
  /** Until then the next in turn has to wait; a pause is for everybody. */
  blockedUntilMs = Number.NEGATIVE_INFINITY
  paused = false
  /** Of a pause that the store told us of: from then on it is asked whether that still holds. */
  askAgainMs = Number.POSITIVE_INFINITY
  /** When the store said so, of whom, and what it wanted. */
  blockedAtMs = Number.NEGATIVE_INFINITY
  blocker: Waiting | undefined
  blockedFor: readonly number[] = []
  /** Per limit: the units that were left then, if the store reported them. */
  left: readonly number[] | undefined
  timer: Timer | undefined
  /** When that timer fires. */
  timerDueMs = 0
  lostTrips = 0

  constructor(lane: string) {
    this.lane = lane
  }

  isBlocked(nowMs: number): boolean {
    return this.blockedUntilMs > nowMs
  }

  /** When it is no longer blocked, or it is time to ask. */
  get wakeMs(): number {
    return Math.min(this.blockedUntilMs, this.askAgainMs)
  }

  unblock(): void {
    this.blockedUntilMs = Number.NEGATIVE_INFINITY
    this.paused = false
    this.askAgainMs = Number.POSITIVE_INFINITY
    this.blocker = undefined
  }
}
