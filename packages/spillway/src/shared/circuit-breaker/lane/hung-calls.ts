/**
 * Calls of one lane that hung: they failed after more time than answers usually take, and began after the
 * last answered call began. An answer to a call that began later proves that the downstream does not hang.
 */
import type { HungReport } from '../../../store/port.js'

interface Failed {
  startMs: number
  endMs: number
  times: number
}

/** Beyond this number, calls that began close to each other are counted together. */
const MOST_ENTRIES = 16

export class HungCalls {
  /** Latest start among the answered calls, with any outcome; -Infinity if none was answered. */
  answeredMs = Number.NEGATIVE_INFINITY
  /** In the order in which they began. */
  #failed: Failed[] = []

  /** A call failed after more time than answers usually take. */
  failed(startMs: number, endMs: number): void {
    if (!this.#isKnown || startMs <= this.answeredMs) return
    this.#forget(({ startMs }) => startMs <= this.answeredMs)
    const failed = this.#failed
    const after = failed.findIndex((each) => each.startMs >= startMs)
    const next = failed[after]
    if (next?.startMs === startMs) {
      next.times++
      next.endMs = endMs
      return
    }
    failed.splice(after === -1 ? failed.length : after, 0, { startMs, endMs, times: 1 })
    if (failed.length > MOST_ENTRIES) mergeOldest(failed)
  }

  clear(): void {
    this.answeredMs = Number.NEGATIVE_INFINITY
    this.#failed = []
  }

  /** `windowMs`: calls that ended earlier no longer count. */
  report(nowMs: number, windowMs: number, overdue: number): HungReport | undefined {
    if (!this.#isKnown) return undefined
    this.#forget(({ startMs, endMs }) => startMs <= this.answeredMs || nowMs - endMs >= windowMs)
    return {
      answeredAgoUs: toUs(nowMs - this.answeredMs),
      failed: this.#failed.map(({ startMs, times }) => [toUs(nowMs - startMs), times]),
      overdue,
    }
  }

  #forget(isOver: (call: Failed) => boolean): void {
    if (this.#failed.length > 0) this.#failed = this.#failed.filter((each) => !isOver(each))
  }

  get #isKnown(): boolean {
    return this.answeredMs !== Number.NEGATIVE_INFINITY
  }
}

/** Stored under the earlier start time, so that an answer that drops one of them drops both. */
function mergeOldest(failed: Failed[]): void {
  const [first, second] = failed as [Failed, Failed]
  const endMs = Math.max(first.endMs, second.endMs)
  failed.splice(0, 2, { startMs: first.startMs, endMs, times: first.times + second.times })
}

function toUs(ms: number): number {
  return Math.round(ms * 1_000)
}
