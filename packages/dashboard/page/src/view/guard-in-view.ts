import type { GuardCard, GuardTick } from '../wire'

/** The guard that a panel shows. */
export interface GuardInView {
  card: GuardCard
  tick: GuardTick
  /** The selected lane. Undefined: all lanes. */
  lane: string | undefined
}
