/**
 * Whether it is still the store that was known. One that was restarted empty, or took over with losses, is not trusted
 * until what was spent before counts no more.
 */
import type { PulseReply } from '../../store/port.js'

/** All pods notice within this time that a store has lost something. */
const ALL_HERE_MS = 2_000

export class StoreEpoch {
  /** As the store was told to be; nothing heard: empty. */
  epoch = ''
  count = 0
  #trustedFromMs = Number.NEGATIVE_INFINITY

  /** For how much longer it is not trusted; 0 or less: it is. */
  distrustMs(nowMs: number): number {
    return this.#trustedFromMs - nowMs
  }

  /** Whether this is another store than before. */
  isOther({ epoch, count }: PulseReply): boolean {
    const other = this.epoch !== '' && this.epoch !== epoch
    this.epoch = epoch
    this.count = count
    return other
  }

  /** Whether it has lost something that still counts. `windowMs`: for how long what was spent does. */
  hasLost({ lostUs, nowUs }: PulseReply, windowMs: number, nowMs: number): boolean {
    if (lostUs === 0) return false
    const distrustMs = Math.max(windowMs, ALL_HERE_MS) - (nowUs - lostUs) / 1_000
    if (distrustMs <= 0) return false
    this.#trustedFromMs = nowMs + distrustMs
    return true
  }
}
