import type { GuardCard, GuardTick } from '../wire'

/** The guard that a panel shows. */
export interface GuardInView {
  card: GuardCard
  tick: GuardTick
  /** The one that was chosen; nothing: all of them. */
  lane: string | undefined
}
