/**
 * Starts queued calls. It takes as many calls from the queue as this pod has free slots, requests the permits of
 * all of them in one round trip and starts those that were granted. The others return to their position, and
 * the lane sleeps exactly as long as the store says. While a round trip is in flight, the next batch collects.
 */
import type { SpillwayError } from '../../core/errors.js'
import type { Timer } from '../../core/time/clock.js'
import { nextTickBatch } from '../../core/time/next-tick-batch.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import { ImmediatePermits } from './immediate-permits.js'
import { type LaneBlock, LaneBlocks } from './lane-block.js'
import { PermitRequests, type PermitRequestsOptions, RETURN_MS } from './permit-requests.js'
import type { CallCost, PermitCall } from './ports.js'
import type { QueuedCall } from './queued-call.js'

export interface PermitDispatcherOptions extends PermitRequestsOptions {
  /** The guard's lanes. Default: lanes of its own. */
  lanes?: LaneRegistry
  /** The refusal of a call that the limits would keep waiting too long. */
  limitedError(block: LaneBlock, retryAfterMs: number, call: CallCost): SpillwayError
  /** The refusal of a call that finds no slot and may not wait. */
  busyError(stage: 'pace' | 'concurrency'): SpillwayError
}

const MAX_BATCH = 256
const NOW = Promise.resolve()

export class PermitDispatcher {
  readonly #options: PermitDispatcherOptions
  readonly #requests: PermitRequests
  /** Until when each lane has to wait. */
  readonly blocks: LaneBlocks
  /** For calls that need not wait. */
  readonly immediate: ImmediatePermits
  #dispatching = false
  #again = false
  #paceTimer: Timer | undefined
  readonly #dispatchSoon = nextTickBatch(() => this.dispatch())
  /** Slots have become free and are given away in a microtask. */
  #freeing = false
  readonly #serveFreed = () => {
    this.#freeing = false
    this.dispatch()
  }

  constructor(options: PermitDispatcherOptions) {
    this.#options = options
    const { clock, queue, limits, mayWait, limitedError } = options
    this.blocks = new LaneBlocks({
      clock,
      queue,
      lanes: options.lanes ?? new LaneRegistry({ name: '', clock }),
      limits,
      mayWait,
      limitedError,
      onUnblocked: () => this.dispatch(),
    })
    this.immediate = new ImmediatePermits(options, this.blocks)
    this.#requests = new PermitRequests(options, this.immediate, {
      onRefused: (block, reply, costs, call) => {
        const othersMayRequest = this.blocks.block(block, reply, costs, call)
        // Slots that this lane did not take are free for the next lane.
        if (othersMayRequest || block.isBlocked(clock.now())) this.#again = true
      },
      onLost: (block, untilMs) => this.blocks.requestLater(block, untilMs),
      onEnd: () => this.dispatch(),
    })
  }

  /** A call has joined the queue. */
  arrived(call: QueuedCall): void {
    const block = this.blocks.of(call.lane)
    this.blocks.joined(block, call as PermitCall)
    if (this.#options.limits?.remote !== true) return this.dispatch()
    if (!block.inFlight) this.#dispatchSoon()
  }

  /** A slot has become free. Slots that become free together share one round trip. */
  freed(): void {
    if (this.#options.limits?.remote === true) return this.#dispatchSoon()
    if (this.#freeing) return
    this.#freeing = true
    NOW.then(this.#serveFreed)
  }

  /** A call has left the queue without a permit. */
  left(call: QueuedCall): void {
    if (this.blocks.left(call, this.#options.clock.now())) this.dispatch()
  }

  /** Calls that wait for this pod's slots and pace, not for their lane's limits. */
  waitingForPod(nowMs: number): number {
    const { queue } = this.#options
    const { onlyLane } = queue
    if (onlyLane !== undefined) return this.#isBlocked(onlyLane, nowMs) ? 0 : queue.length
    let waiting = 0
    for (const lane of queue.lanes) {
      if (!this.#isBlocked(lane, nowMs)) waiting += queue.lengthOf(lane)
    }
    return waiting
  }

  /**
   * The part of `waitingForPod` that does not fit into the free slots. The others only wait for the reply to a permit request,
   * which is no sign of load, unless the last one had no usable reply.
   */
  backlog(nowMs: number): number {
    const { queue, capacity } = this.#options
    let free = capacity.free(nowMs)
    let waiting = 0
    for (const lane of queue.lanes) {
      const block = this.blocks.get(lane)
      const length = queue.lengthOf(lane)
      const isBlocked = block?.isBlocked(nowMs) === true
      if (isBlocked && block.lostRoundTrips > 0) waiting += length
      else if (!isBlocked) {
        const fitting = Math.max(0, Math.min(length, free, capacity.free(nowMs, lane)))
        free -= fitting
        waiting += length - fitting
      }
    }
    return waiting
  }

  /** The longest wait of the calls that `waitingForPod` counts and of those in `ownLane`, for any reason. */
  oldestWaitMs(nowMs: number, ownLane: string): number {
    const { queue } = this.#options
    return queue.oldestWaitMs(nowMs, (lane) => lane === ownLane || !this.#isBlocked(lane, nowMs))
  }

  #isBlocked(lane: string, nowMs: number): boolean {
    return this.blocks.get(lane)?.isBlocked(nowMs) === true
  }

  /** Calls that could start now; the queue accepts that many beyond its size. */
  spare(lane: string, call: CallCost, nowMs: number): number {
    if (this.blocks.blockOf(lane, call, nowMs) !== undefined) return 0
    return Math.max(0, this.#options.capacity.free(nowMs, lane))
  }

  /** Starts what can be started. */
  dispatch(): void {
    // Starting or removing a call may call this method again; the running loop covers that.
    this.#again = true
    if (this.#dispatching) return
    const { clock, queue, capacity, mayWait } = this.#options
    // A call that frees its slot leads here again.
    if (mayWait && capacity.full) return
    const nowMs = clock.now()
    this.#dispatching = true
    try {
      while (this.#again) {
        this.#again = false
        const { onlyLane } = queue
        if (onlyLane !== undefined) this.#serveLane(this.blocks.of(onlyLane), nowMs)
        else for (const [block, calls] of this.#choose(nowMs)) this.#request(block, calls, nowMs)
      }
    } finally {
      this.#dispatching = false
    }
    if (!mayWait) this.#refuseWaiting()
    this.#sleep(nowMs)
  }

  /** Capacity of the lane's limits may have become free. A pause stays. */
  unblock(lane: string): void {
    const block = this.blocks.get(lane)
    if (block === undefined || block.paused) return
    block.unblock()
    this.dispatch()
  }

  /** As `unblock`, for every lane: limits were raised. */
  unblockAll(): void {
    for (const block of this.blocks.values()) if (!block.paused) block.unblock()
    this.dispatch()
  }

  /** Permits of the lane were not used in time. The next request waits until they were returned. */
  requestLater(lane: string): void {
    const block = this.blocks.of(lane)
    block.lostRoundTrips = Math.max(1, block.lostRoundTrips)
    this.blocks.requestLater(block, this.#options.clock.now() + RETURN_MS)
  }

  /** No call of the lane starts before then. */
  pauseUntil(lane: string, untilMs: number): void {
    this.blocks.pauseLane(lane, untilMs)
    this.#sleep(this.#options.clock.now())
  }

  /** Refuses all calls of the lane, also those on a round trip. Stops when there is no error. */
  empty(lane: string | undefined, createError: (lane: string) => unknown): void {
    const { queue } = this.#options
    const lanes = lane === undefined ? [...queue.lanes, ...this.blocks.lanes()] : [lane]
    for (const each of new Set(lanes)) {
      const requesting = this.blocks.get(each)?.requesting ?? []
      for (const call of [...queue.list(each), ...requesting]) {
        if (call.state === 'gone') continue
        const error = createError(each)
        if (error === undefined) break
        queue.remove(call)
        ;(call as PermitCall).refuse(error)
      }
    }
  }

  /** Resolves when no round trip is in flight, and unused permits were returned. */
  close(): Promise<void> {
    this.#paceTimer?.cancel()
    this.blocks.close()
    return this.#requests.idle()
  }

  /** The usual case: all waiting calls are in one lane. */
  #serveLane(block: LaneBlock, nowMs: number): void {
    const { queue, capacity } = this.#options
    const { lane } = block
    if (block.inFlight || block.isBlocked(nowMs)) return
    const calls: PermitCall[] = []
    const most = Math.min(capacity.free(nowMs, lane), MAX_BATCH)
    while (calls.length < most) {
      const call = queue.take(lane, nowMs)
      if (call === undefined) break
      calls.push(call as PermitCall)
    }
    // The rest follows with the next request; if the store replies synchronously, that is now.
    if (calls.length === MAX_BATCH) this.#again = true
    if (calls.length > 0) this.#request(block, calls, nowMs)
  }

  #request(block: LaneBlock, calls: PermitCall[], nowMs: number): void {
    this.#requests.request(block, calls, this.#options.sameClock === true ? nowMs : undefined)
  }

  /** Takes the best calls of all lanes out of the queue, as many as this pod can start. */
  #choose(nowMs: number): Map<LaneBlock, PermitCall[]> {
    const { queue, capacity } = this.#options
    const chosen = new Map<LaneBlock, PermitCall[]>()
    const ready = [...queue.lanes].filter((lane) => {
      const block = this.blocks.of(lane)
      return !block.inFlight && !block.isBlocked(nowMs) && capacity.free(nowMs, lane) > 0
    })
    for (let free = capacity.free(nowMs); free > 0; ) {
      const lane = ready.length === 1 ? ready[0] : queue.bestOf(ready, nowMs)
      const call = lane === undefined ? undefined : queue.take(lane, nowMs)
      if (call === undefined) {
        if (lane === undefined || ready.length === 1) break
        // CoDel dropped the last call of this lane. There are others.
        continue
      }
      free--
      const block = this.blocks.of(call.lane)
      const calls = chosen.get(block)
      if (calls === undefined) chosen.set(block, [call as PermitCall])
      else calls.push(call as PermitCall)
      const most = capacity.lanes?.free(call.lane) ?? Number.POSITIVE_INFINITY
      if ((calls?.length ?? 1) >= most) ready.splice(ready.indexOf(call.lane), 1)
      if (calls !== undefined && calls.length >= MAX_BATCH) {
        // The rest follows with the next request; if the store replies synchronously, that is now.
        this.#again = true
        break
      }
    }
    return chosen
  }

  /** Without a queue, a call that is not on a round trip is refused. */
  #refuseWaiting(): void {
    const { queue, clock, limitedError, busyError, capacity } = this.#options
    for (const lane of [...queue.lanes]) {
      const block = this.blocks.of(lane)
      if (block.inFlight || block.lostRoundTrips > 0) continue
      const nowMs = clock.now()
      const blockedMs = block.blockedUntilMs - nowMs
      for (const each of queue.list(lane)) {
        if (each.state === 'gone') continue
        queue.remove(each)
        const stage = capacity.paceWaitMs(nowMs) > 0 ? 'pace' : 'concurrency'
        const call = each as PermitCall
        call.refuse(blockedMs > 0 ? limitedError(block, blockedMs, call) : busyError(stage))
      }
    }
  }

  /** One timer for each lane that waits for a known time, and one for the pace. */
  #sleep(nowMs: number): void {
    const { queue, clock, capacity } = this.#options
    if (queue.length === 0) return
    if (queue.onlyLane !== undefined) this.#sleepInLane(this.blocks.of(queue.onlyLane), nowMs)
    else for (const lane of queue.lanes) this.#sleepInLane(this.blocks.of(lane), nowMs)
    const paceMs = capacity.paceWaitMs(nowMs)
    if (paceMs === 0) return
    for (const lane of queue.lanes) queue.excludeWait(lane, nowMs + paceMs)
    if (this.#paceTimer !== undefined) return
    this.#paceTimer = clock.schedule(paceMs, () => {
      this.#paceTimer = undefined
      this.dispatch()
    })
    this.#paceTimer.unref()
  }

  #sleepInLane(block: LaneBlock, nowMs: number): void {
    if (block.inFlight || !block.isBlocked(nowMs)) return
    const { queue, clock } = this.#options
    this.blocks.recheckPause(block, nowMs)
    queue.excludeWait(block.lane, block.blockedUntilMs)
    // An earlier timer is enough, because it calls this method again.
    const { wakeMs } = block
    if (block.timer !== undefined && block.timerDueMs <= wakeMs) return
    block.timer?.cancel()
    block.timerDueMs = wakeMs
    block.timer = clock.schedule(wakeMs - nowMs, () => {
      block.timer = undefined
      this.dispatch()
    })
    // Waiting calls keep the process alive by their own timers, until they have left.
    block.timer.unref()
  }
}
