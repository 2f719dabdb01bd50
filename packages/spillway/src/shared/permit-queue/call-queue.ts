/**
 * The queue: the only place where a call waits. Calls are ordered by priority, then by age, and a low priority
 * rises with age. The queue is bounded; when it is full, the newest call of the lowest priority is evicted. It
 * does not know what calls wait for: the dispatcher takes them out and returns those that got no permit to
 * their position.
 */
import { type CallerSignal, onAbort } from '../../core/abort.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import type { Clock } from '../../core/time/clock.js'
import { LaneQueue } from './lane-queue.js'
import { QueueTimeout } from './queue-timeout.js'
import type { LeaveReason, QueuedCall } from './queued-call.js'

export interface CallQueueOptions {
  clock: Clock
  /** Calls that may wait. */
  size: number
  /** Longest wait of a call. */
  timeoutMs: number
  /** The queue is standing when the oldest call's wait exceeds this for `intervalMs`. Infinite: it never is. */
  targetMs: number
  /** Default: `targetMs`. */
  intervalMs?: number
  /** Waiting this long makes up for one step of priority. */
  agingMs: number
}

export class CallQueue {
  readonly #options: CallQueueOptions
  readonly #lanes = new Map<string, LaneQueue>()
  /** Consecutive calls mostly use the same lane. */
  #lastLane: LaneQueue | undefined
  /** Undefined without a queue timeout. */
  readonly #timeout: QueueTimeout | undefined
  #joined = 0
  length = 0
  /** Longest wait of a call. */
  readonly timeoutMs: number
  /** The lane of all waiting calls, if they share one. */
  onlyLane: string | undefined

  constructor(options: CallQueueOptions) {
    this.#options = options
    const { clock, timeoutMs } = options
    this.timeoutMs = timeoutMs
    if (timeoutMs === Number.POSITIVE_INFINITY) return
    this.#timeout = new QueueTimeout(clock, timeoutMs, (call) => this.#timeOut(call))
  }

  /** Lanes with waiting calls. */
  get lanes(): IterableIterator<string> {
    return this.#lanes.keys()
  }

  get full(): boolean {
    return this.length >= this.#options.size
  }

  /** Whether a call could join. `spare`: calls that could start now, beyond the size of the queue. */
  hasPlace(priority: number, spare: number): boolean {
    return this.length < this.#options.size + spare || this.#leastBelow(priority) !== undefined
  }

  /** Adds a call, evicting one of lower priority if the queue is full. False if there is no place. */
  join(call: QueuedCall, nowMs: number, spare: number): boolean {
    if (this.length >= this.#options.size + spare) {
      const least = this.#leastBelow(call.priority)
      if (least === undefined) return false
      this.dismiss(least, 'displaced')
    }
    call.join(this.#joined++, nowMs)
    this.#insert(call)
    this.#timeout?.add(call)
    const { deadlineMs, signal } = call
    const hasDeadline = deadlineMs <= nowMs + this.timeoutMs && deadlineMs !== Infinity
    if (hasDeadline || signal !== undefined) {
      call.stopListening = this.#listen(call, hasDeadline ? deadlineMs : undefined, signal)
    }
    return true
  }

  /** When the call gives up waiting for a permit. */
  giveUpMs(call: QueuedCall): number {
    if (!call.mayWait) return Number.NEGATIVE_INFINITY
    return Math.min(call.joinedMs + this.timeoutMs, call.deadlineMs)
  }

  /** The next call of a lane, which stays in the queue. */
  next(lane: string, nowMs: number): QueuedCall | undefined {
    return this.#known(lane)?.next(nowMs)
  }

  /** Takes the next call out to request its permits. Its timeout keeps running. */
  take(lane: string, nowMs: number): QueuedCall | undefined {
    const own = this.#known(lane)
    if (own === undefined) return undefined
    this.#control(own, nowMs)
    const call = own.next(nowMs)
    if (call === undefined) return undefined
    own.take(call)
    this.#shrunk(own)
    call.state = 'requesting'
    return call
  }

  /** Returns a call that got no permit to its position. Cheap if the last call taken is put back first. */
  putBack(call: QueuedCall): void {
    if (call.state !== 'requesting') return
    call.state = 'waiting'
    this.#insert(call)
  }

  /** Removes a call that was granted or refused. */
  remove(call: QueuedCall): void {
    const { state } = call
    if (state === 'gone') return
    call.state = 'gone'
    if (state === 'waiting') {
      const lane = this.#known(call.lane) as LaneQueue
      lane.forget(call)
      this.#shrunk(lane)
    }
    this.#timeout?.forget()
    call.stopListening?.()
  }

  dismiss(call: QueuedCall, why: LeaveReason): void {
    if (call.state === 'gone') return
    this.remove(call)
    call.onLeave(why)
  }

  close(): void {
    this.#timeout?.close()
  }

  lengthOf(lane: string): number {
    return this.length === 0 ? 0 : (this.#known(lane)?.length ?? 0)
  }

  /** A copy of a lane's waiting calls, by priority, then in order. */
  list(lane: string): QueuedCall[] {
    return this.#lanes.get(lane)?.list() ?? []
  }

  /** A copy of the calls of a lane that give up before `untilMs`. */
  givingUpBefore(lane: string, untilMs: number): QueuedCall[] {
    const own = this.#known(lane)
    // The bound is checked first, so that repeated calls are cheap while the queue is long.
    if (own === undefined || own.earliestGiveUpMs >= untilMs) return []
    let earliestMs = Number.POSITIVE_INFINITY
    const calls: QueuedCall[] = []
    for (const call of own.list()) {
      const giveUpMs = this.giveUpMs(call)
      if (giveUpMs < untilMs) calls.push(call)
      if (giveUpMs < earliestMs) earliestMs = giveUpMs
    }
    own.earliestGiveUpMs = earliestMs
    return calls
  }

  /** The lane waits for a known time, which is no sign of overload. */
  excludeWait(lane: string, untilMs: number): void {
    this.#lanes.get(lane)?.excludeWait(untilMs)
  }

  /** The lane with the next call of all. */
  bestOf(lanes: Iterable<string>, nowMs: number): string | undefined {
    let best: string | undefined
    let bestRank = Number.POSITIVE_INFINITY
    let bestArrivedMs = 0
    for (const lane of lanes) {
      const own = this.#lanes.get(lane)
      const call = own?.next(nowMs)
      if (own === undefined || call === undefined) continue
      const rank = own.rank(call, nowMs)
      if (rank > bestRank || (rank === bestRank && call.arrivedMs >= bestArrivedMs)) continue
      best = lane
      bestRank = rank
      bestArrivedMs = call.arrivedMs
    }
    return best
  }

  /**
   * Longest wait of a queued call in milliseconds, for any reason; 0 if none waits. `counts`: the lanes to include.
   * Default: all.
   */
  oldestWaitMs(nowMs: number, counts?: (lane: string) => boolean): number {
    if (this.#timeout !== undefined) {
      const { oldest } = this.#timeout
      if (oldest === undefined) return 0
      if (counts === undefined || counts(oldest.lane)) return Math.max(0, nowMs - oldest.joinedMs)
    }
    // There is a list in the order of joins only for all lanes together, and only with a queue timeout.
    let longestMs = 0
    for (const { name, oldestJoinedMs } of this.#lanes.values()) {
      if (counts === undefined || counts(name)) {
        longestMs = Math.max(longestMs, nowMs - oldestJoinedMs)
      }
    }
    return longestMs
  }

  /** Whether the queue of some lane is standing: newest first, and the oldest are dropped. */
  get standing(): boolean {
    for (const { codel } of this.#lanes.values()) if (codel.standing) return true
    return false
  }

  lengthsByPriority(): Record<Priority, number> {
    const lengths = { critical: 0, high: 0, normal: 0, low: 0 }
    for (const { byPriority } of this.#lanes.values()) {
      for (const [index, { length }] of byPriority.entries()) {
        lengths[PRIORITIES[index] as Priority] += length
      }
    }
    return lengths
  }

  #listen(
    call: QueuedCall,
    deadlineMs: number | undefined,
    signal: CallerSignal | undefined,
  ): () => void {
    const { clock } = this.#options
    const expire = () => {
      if (call.mayExpire()) this.dismiss(call, 'deadline')
    }
    const timer =
      deadlineMs === undefined ? undefined : clock.schedule(deadlineMs - clock.now(), expire)
    const forgetSignal =
      signal &&
      onAbort(signal, () => {
        this.remove(call)
        call.onAborted(signal.reason)
      })
    return () => {
      timer?.cancel()
      forgetSignal?.()
    }
  }

  #timeOut(call: QueuedCall): void {
    const pastDeadline = call.deadlineMs <= call.joinedMs + this.timeoutMs
    this.dismiss(call, pastDeadline ? 'deadline' : 'timeout')
  }

  #insert(call: QueuedCall): void {
    let lane = this.#known(call.lane)
    if (lane === undefined) {
      lane = new LaneQueue(call.lane, this.#options)
      this.#lanes.set(call.lane, lane)
      this.#lanesChanged()
    }
    lane.insert(call, this.giveUpMs(call))
    this.length++
  }

  /** One call less. An empty lane is dropped, because there may be many names. */
  #shrunk(lane: LaneQueue): void {
    this.length--
    if (lane.length > 0) return
    this.#lanes.delete(lane.name)
    this.#lastLane = undefined
    this.#lanesChanged()
  }

  #known(lane: string): LaneQueue | undefined {
    if (this.#lastLane?.name === lane) return this.#lastLane
    const known = this.#lanes.get(lane)
    if (known !== undefined) this.#lastLane = known
    return known
  }

  #lanesChanged(): void {
    this.onlyLane = this.#lanes.size === 1 ? this.#lanes.keys().next().value : undefined
  }

  #control(lane: LaneQueue, nowMs: number): void {
    if (this.#options.targetMs === Number.POSITIVE_INFINITY) return
    const { codel } = lane
    codel.observe(nowMs, lane.standingDelayMs(nowMs))
    // At most one drop per call served. Slots become free in waves, and the drops that fell due
    // between two waves must not remove the calls that the next wave serves.
    if (!codel.standing || !codel.drop(nowMs)) return
    const call = lane.nextDrop
    if (call === undefined) return
    this.dismiss(call, 'overload')
    codel.observe(nowMs, lane.standingDelayMs(nowMs))
  }

  /** The newest call of the lowest priority, if that is below `importance`. */
  #leastBelow(importance: number): QueuedCall | undefined {
    for (let priority = PRIORITIES.length - 1; priority > importance; priority--) {
      let newest: QueuedCall | undefined
      for (const { byPriority } of this.#lanes.values()) {
        const last = byPriority[priority]?.last
        if (last !== undefined && (newest === undefined || last.arrivedMs > newest.arrivedMs)) {
          newest = last
        }
      }
      if (newest !== undefined) return newest
    }
    return undefined
  }
}
