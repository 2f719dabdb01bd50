/** The vendor's limits, as far as an admission needs them. `L` is their permit. */
import type { Cost } from '../shared/rate-limiter/permit.js'
import type { MaybePromise, TakeReply } from '../store/port.js'

export interface LimitGate<L, R extends TakeReply> {
  /** Answers come later. */
  readonly remote: boolean
  /** A permit is worth nothing when its trip took longer than this. */
  readonly useWithinMs: number
  /** The limits in force; they may change while somebody waits, and the costs with them. */
  readonly limits: unknown
  costsOf(cost: Cost | undefined): readonly number[]
  take(
    lane: string,
    costs: readonly (readonly number[])[],
    atMs: number | undefined,
  ): MaybePromise<R>
  createPermit(lane: string, costs: readonly number[], reply: R): L
  /** Decided by this pod, now. */
  isFresh(reply: R): boolean
  refund(permit: L): void
  /** For how long a lane is paused, if anybody knows. */
  pausedMs(lane: string): Promise<number | undefined>
}
