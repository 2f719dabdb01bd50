/**
 * Until when the next call of each lane has to wait: because the vendor asked for a pause, or because the limits
 * have nothing left. Calls that cannot wait that long are refused at once.
 */
import type { SpillwayError } from '../../core/errors.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { TakeReply } from '../../store/port.js'
import { LaneMap, type LaneRegistry } from '../lanes/lane-registry.js'
import type { CallQueue } from './call-queue.js'
import type { CallCost, LimitPort, PermitCall } from './ports.js'
import type { QueuedCall } from './queued-call.js'

/**
 * An operator may end a pause, and no message announces it. A lane that is paused for longer than this reads
 * the pause again.
 */
const RECHECK_PAUSE_MS = 1_000
/** How long a refusal is trusted when no call of the lane waits. Other pods may return permits meanwhile. */
const TRUSTED_MS = 10

export class LaneBlock {
  readonly lane: string
  /** Calls on the round trip that is in flight; one at a time. */
  requesting: readonly PermitCall[] = NO_CALLS
  inFlight = false
  /** Capacity became free during the round trip: a refusal that it brings is out of date. */
  wokenInFlight = false
  /** The next call has to wait until then; if paused, every call. */
  blockedUntilMs = Number.NEGATIVE_INFINITY
  paused = false
  /** When to read a pause again that the store reported. */
  recheckMs = Number.POSITIVE_INFINITY
  /** When the store refused which call, and its costs. */
  blockedAtMs = Number.NEGATIVE_INFINITY
  blocker: PermitCall | undefined
  blockedCosts: readonly number[] = []
  /** Per limit: the units that were left then, if the store reported them. */
  left: readonly number[] | undefined
  timer: Timer | undefined
  timerDueMs = 0
  /**
   * Round trips in a row without a usable reply. If there are any, the lane is blocked until the next one, and not by its
   * limits: a call that may not wait for them is not refused.
   */
  lostRoundTrips = 0
  /** Replies in a row that arrived too late to use. */
  lateReplies = 0

  constructor(lane: string) {
    this.lane = lane
  }

  isBlocked(nowMs: number): boolean {
    return this.blockedUntilMs > nowMs
  }

  /** When to request permits for the lane again. */
  get wakeMs(): number {
    return Math.min(this.blockedUntilMs, this.recheckMs)
  }

  unblock(): void {
    this.wokenInFlight = this.inFlight
    this.blockedUntilMs = Number.NEGATIVE_INFINITY
    this.paused = false
    this.recheckMs = Number.POSITIVE_INFINITY
    this.blocker = undefined
  }
}

export interface LaneBlocksOptions {
  clock: Clock
  queue: CallQueue
  lanes: LaneRegistry
  limits: Pick<LimitPort, 'settings' | 'pausedMs'> | undefined
  /** Whether calls may wait for a permit. */
  mayWait: boolean
  /** The refusal of a call that would have to wait too long. */
  limitedError(block: LaneBlock, retryAfterMs: number, call: CallCost): SpillwayError
  /** A pause has ended early. */
  onUnblocked(): void
}

/** A call that may have to wait. */
export interface BlockableCall extends CallCost {
  readonly lane: string
  readonly deadlineMs: number
  /** False: it does not wait for a permit to become free. Default: true. */
  readonly mayWait?: boolean
}

export class LaneBlocks extends LaneMap<LaneBlock> {
  readonly #options: LaneBlocksOptions

  constructor(options: LaneBlocksOptions) {
    const { clock, queue, lanes } = options
    super(lanes, {
      create: (lane) => new LaneBlock(lane),
      isIdle: (block) =>
        !block.inFlight &&
        block.timer === undefined &&
        !block.isBlocked(clock.now()) &&
        queue.lengthOf(block.lane) === 0,
    })
    this.#options = options
  }

  /** The refusal of a call whose lane is blocked, by its limits or by a pause, for longer than it can wait. */
  refusalOf(call: BlockableCall, nowMs: number): SpillwayError | undefined {
    const block = this.blockOf(call.lane, call, nowMs)
    if (block === undefined) return undefined
    const { queue, mayWait, limitedError } = this.#options
    const blockedMs = block.blockedUntilMs - nowMs
    const waits = mayWait && call.mayWait !== false
    if (waits && blockedMs <= Math.min(queue.timeoutMs, call.deadlineMs - nowMs)) return undefined
    return limitedError(block, blockedMs, call)
  }

  /** The refusal of a call that would have to wait too long. */
  limitedError(call: BlockableCall, retryAfterMs: number): SpillwayError {
    return this.#options.limitedError(this.of(call.lane), retryAfterMs, call)
  }

  /**
   * The lane's block, if it holds back a new call of this cost. A pause holds back every call, and a call waits at
   * least as long as those before it. If none waits, an earlier refusal counts only for a moment.
   */
  blockOf(lane: string, call: CallCost, nowMs: number): LaneBlock | undefined {
    const block = this.get(lane)
    // Without a reply of the store, nothing is known about the limits.
    if (block === undefined || !block.isBlocked(nowMs) || block.lostRoundTrips > 0) return undefined
    this.recheckPause(block, nowMs)
    const applies =
      block.paused ||
      this.#options.queue.lengthOf(lane) > 0 ||
      this.#wasJustRefused(block, call, nowMs)
    return applies ? block : undefined
  }

  /** Paused, or calls wait for its limits. */
  isShut(lane: string, nowMs: number): boolean {
    const block = this.get(lane)
    if (block?.isBlocked(nowMs) !== true || block.lostRoundTrips > 0) return false
    return block.paused || this.#options.queue.lengthOf(lane) > 0
  }

  /** How long the next call has to wait, as far as is known. */
  waitMs(lane: string, nowMs: number): number {
    return Math.max(0, (this.get(lane)?.blockedUntilMs ?? 0) - nowMs)
  }

  /** The remaining pause of the lane; 0 if it is not paused. */
  pausedMs(lane: string, nowMs: number): number {
    return this.get(lane)?.paused === true ? this.waitMs(lane, nowMs) : 0
  }

  /** The age of the refusal that blocks the lane; undefined if it is not blocked. */
  replyAgeMs(lane: string, nowMs: number): number | undefined {
    const block = this.get(lane)
    return block?.isBlocked(nowMs) === true ? Math.max(0, nowMs - block.blockedAtMs) : undefined
  }

  /** A call has joined the queue. */
  joined(block: LaneBlock, call: PermitCall): void {
    const { queue, clock } = this.#options
    if (queue.lengthOf(block.lane) !== 1 || block.inFlight || block.paused) return
    // An earlier refusal was for calls that have left. One of this moment was for this call.
    if (block.blockedAtMs < clock.now()) block.unblock()
    else block.blocker = call
  }

  /** A call has left the queue. True if the lane has to ask the store for its next call. */
  left(call: QueuedCall, nowMs: number): boolean {
    const block = this.get(call.lane)
    if (block === undefined || block.blocker !== call || block.paused) return false
    const next = this.#options.queue.next(call.lane, nowMs) as PermitCall | undefined
    if (next === undefined) {
      block.unblock()
      return false
    }
    // Calls that cost at least as much have to wait as long, so they need no check of their own when a call leaves.
    if (costsAsMuch(this.#costsOf(block.lane, next), block.blockedCosts)) {
      block.blocker = next
      return false
    }
    block.unblock()
    return true
  }

  /**
   * The store refused `blocker`. Returns whether the other calls may ask again at once, because that call
   * cannot wait and has left.
   */
  block(
    block: LaneBlock,
    { waitUs, paused, left }: TakeReply,
    costs: readonly number[],
    blocker: PermitCall | undefined,
  ): boolean {
    const nowMs = this.#options.clock.now()
    const untilMs = nowMs + waitUs / 1_000
    // The vendor asked for a longer pause during the round trip.
    if (block.paused && block.blockedUntilMs > untilMs) return this.#refuseUnableToWait(block)
    if (block.wokenInFlight && !paused) {
      block.wokenInFlight = false
      return true
    }
    block.blockedUntilMs = untilMs
    block.lostRoundTrips = 0
    block.recheckMs = paused ? nowMs + RECHECK_PAUSE_MS : Number.POSITIVE_INFINITY
    block.blockedAtMs = nowMs
    block.blockedCosts = costs
    block.left = left
    block.blocker = blocker
    block.paused = paused
    return this.#refuseUnableToWait(block)
  }

  /** A round trip had no usable reply, so the next one waits until then. A longer pause stays, and still refuses calls. */
  requestLater(block: LaneBlock, untilMs: number): void {
    if (block.paused && block.blockedUntilMs > untilMs) {
      block.lostRoundTrips = 0
      this.#refuseUnableToWait(block)
    } else block.blockedUntilMs = Math.max(block.blockedUntilMs, untilMs)
  }

  /** The vendor asked this pod for a pause of a lane, which holds for all lanes of its pool. */
  pauseLane(lane: string, untilMs: number): void {
    this.#pause(this.of(lane), untilMs)
    const settings = this.#options.limits?.settings
    const pool = settings?.of(lane).pool
    if (pool === undefined) return
    for (const block of this.values()) {
      if (block.lane !== lane && settings?.of(block.lane).pool === pool) this.#pause(block, untilMs)
    }
  }

  /** The longer of two pauses counts. */
  #pause(block: LaneBlock, untilMs: number): void {
    block.blockedUntilMs = block.paused ? Math.max(block.blockedUntilMs, untilMs) : untilMs
    block.paused = true
    block.lostRoundTrips = 0
    // This is newer than anything the store may say about it.
    block.recheckMs = Number.POSITIVE_INFINITY
    this.#refuseUnableToWait(block)
  }

  recheckPause(block: LaneBlock, nowMs: number): void {
    if (nowMs >= block.recheckMs) void this.#readPause(block, nowMs).catch(() => {})
  }

  override close(): void {
    for (const { timer } of this.values()) timer?.cancel()
    super.close()
  }

  #costsOf(lane: string, call: CallCost): readonly number[] {
    return this.#options.limits?.settings.of(lane).costsOf(call) ?? call.costs
  }

  async #readPause(block: LaneBlock, nowMs: number): Promise<void> {
    block.recheckMs = nowMs + RECHECK_PAUSE_MS
    const { clock, onUnblocked, limits } = this.#options
    const pausedMs = await limits?.pausedMs(block.lane)
    // Meanwhile the vendor may have asked for a pause.
    if (pausedMs === undefined || block.recheckMs === Number.POSITIVE_INFINITY) return
    block.blockedUntilMs = clock.now() + pausedMs
    if (pausedMs > 0) return
    block.unblock()
    onUnblocked()
  }

  /** The store has just refused a call that cost no more. */
  #wasJustRefused(block: LaneBlock, call: CallCost, nowMs: number): boolean {
    if (nowMs - block.blockedAtMs >= TRUSTED_MS) return false
    return costsAsMuch(this.#costsOf(block.lane, call), block.blockedCosts)
  }

  /**
   * Refuses calls that cannot wait as long as the next one has to. If the next one cannot wait itself, only
   * calls that cost as much leave with it; the others may fit, and ask again.
   */
  #refuseUnableToWait(block: LaneBlock): boolean {
    const { queue, clock, limitedError } = this.#options
    const { blocker, blockedUntilMs } = block
    const blockerLeaves =
      !block.paused &&
      blocker !== undefined &&
      (blocker.state === 'gone' || queue.giveUpMs(blocker) < blockedUntilMs)
    const retryAfterMs = blockedUntilMs - clock.now()
    for (const call of queue.givingUpBefore(block.lane, blockedUntilMs) as PermitCall[]) {
      if (call.state === 'gone') continue
      if (blockerLeaves && !costsAsMuch(this.#costsOf(block.lane, call), block.blockedCosts))
        continue
      queue.remove(call)
      call.refuse(limitedError(block, retryAfterMs, call))
    }
    if (blockerLeaves) block.unblock()
    return blockerLeaves
  }
}

const NO_CALLS: readonly PermitCall[] = []

function costsAsMuch(one: readonly number[], other: readonly number[]): boolean {
  for (let index = 0; index < one.length; index++) {
    if ((one[index] as number) < (other[index] ?? 0)) return false
  }
  return true
}
