/** The calls of one lane that wait: a deque per priority, oldest first. */
import { PRIORITIES } from '../../core/options/priority.js'
import { CoDel } from './codel.js'
import { CallDeque } from './deque.js'
import { isBefore, type QueuedCall } from './queued-call.js'

export class LaneQueue {
  readonly name: string
  readonly byPriority = PRIORITIES.map(() => new CallDeque())
  length = 0
  readonly codel: CoDel
  /** No call in the lane gives up before this time; some may stay longer. */
  earliestGiveUpMs = Number.POSITIVE_INFINITY
  readonly #agingMs: number
  /** Until then the lane waited for a known time, which does not count as standing delay. */
  #waitExcludedUntilMs = Number.NEGATIVE_INFINITY

  constructor(
    name: string,
    { targetMs, intervalMs, agingMs }: { targetMs: number; intervalMs?: number; agingMs: number },
  ) {
    this.name = name
    this.codel = new CoDel(targetMs, intervalMs)
    this.#agingMs = agingMs
  }

  insert(call: QueuedCall, giveUpMs: number): void {
    if (giveUpMs < this.earliestGiveUpMs) this.earliestGiveUpMs = giveUpMs
    this.#dequeOf(call).insert(call)
    this.length++
  }

  /** Removes a call that `next` returned. */
  take(call: QueuedCall): void {
    this.#dequeOf(call).take(call)
    this.length--
  }

  /** One of its calls was removed. */
  forget(call: QueuedCall): void {
    this.#dequeOf(call).forget()
    this.length--
  }

  excludeWait(untilMs: number): void {
    this.#waitExcludedUntilMs = Math.max(this.#waitExcludedUntilMs, untilMs)
  }

  /** All calls, by priority, then in order. */
  list(): QueuedCall[] {
    return this.byPriority.flatMap((calls) => calls.list())
  }

  /** The next call: the oldest of the best rank or, while the queue is standing, the newest. */
  next(nowMs: number): QueuedCall | undefined {
    const { standing } = this.codel
    let best: QueuedCall | undefined
    for (const calls of this.byPriority) {
      if (calls.length === 0) continue
      const call = (standing ? calls.last : calls.first) as QueuedCall
      if (best === undefined || this.#goesBefore(call, best, nowMs)) best = call
    }
    return best
  }

  /** Lower is sooner. Each `agingMs` of age makes up for one step of priority. */
  rank(call: QueuedCall, nowMs: number): number {
    return call.priority - Math.floor((nowMs - call.arrivedMs) / this.#agingMs)
  }

  /**
   * The oldest call's wait for this pod, which CoDel measures: without the time in which the lane waited for
   * its limits or the pace. Negative if the lane is empty.
   */
  standingDelayMs(nowMs: number): number {
    return nowMs - Math.max(this.oldestJoinedMs, this.#waitExcludedUntilMs)
  }

  /** When the oldest call joined, judging by the first of each priority. Infinite if the lane is empty. */
  get oldestJoinedMs(): number {
    let oldestMs = Number.POSITIVE_INFINITY
    for (const calls of this.byPriority) {
      if (calls.length === 0) continue
      const { joinedMs } = calls.first as QueuedCall
      if (joinedMs < oldestMs) oldestMs = joinedMs
    }
    return oldestMs
  }

  /** The call to drop while the queue is standing: the oldest of the lowest priority, never a critical one. */
  get nextDrop(): QueuedCall | undefined {
    for (let priority = PRIORITIES.length - 1; priority > 0; priority--) {
      const first = this.byPriority[priority]?.first
      if (first !== undefined) return first
    }
    return undefined
  }

  #dequeOf({ priority }: QueuedCall): CallDeque {
    return this.byPriority[priority] as CallDeque
  }

  #goesBefore(one: QueuedCall, other: QueuedCall, nowMs: number): boolean {
    const byRank = this.rank(one, nowMs) - this.rank(other, nowMs)
    return byRank === 0 ? isBefore(one, other) : byRank < 0
  }
}
