/**
 * Whether the store is still the one that was known. A store that was restarted empty, or took over
 * with losses, is not trusted until everything spent before has left the window.
 */
import type { PulseReply } from '../../store/port.js'

/** All pods notice within this time that a store has lost data. */
const ALL_HERE_MS = 2_000

export class StoreEpoch {
  /** The epoch of the last reply; empty before the first. */
  epoch = ''
  count = 0
  #trustedFromMs = Number.NEGATIVE_INFINITY

  /** How much longer the store is distrusted; 0 or less: it is trusted. */
  distrustMs(nowMs: number): number {
    return this.#trustedFromMs - nowMs
  }

  /** Whether the reply comes from another store than before. */
  isOther({ epoch, count }: PulseReply): boolean {
    const other = this.epoch !== '' && this.epoch !== epoch
    this.epoch = epoch
    this.count = count
    return other
  }

  /** Whether the store has lost data that still counts. `countsUntilUs`: until when units spent before count. */
  hasLost({ lostUs, nowUs }: PulseReply, countsUntilUs: number, nowMs: number): boolean {
    if (lostUs === 0) return false
    const untilUs = Math.max(countsUntilUs, lostUs + ALL_HERE_MS * 1_000)
    const distrustMs = (untilUs - nowUs) / 1_000
    if (distrustMs <= 0) return false
    this.#trustedFromMs = nowMs + distrustMs
    return true
  }
}
