import type { GuardCard, GuardTick } from '../wire'

/** What a panel of a guard's page is about. */
export interface GuardInView {
  card: GuardCard
  tick: GuardTick
  /** The one that was chosen; nothing: all of them. */
  lane: string | undefined
}
