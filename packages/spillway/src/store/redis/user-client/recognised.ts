/** The part of an application's client that the store uses, for either library. */
import type { Listener, Subscribe, SubscriptionOptions } from '../connection/subscription.js'

export interface RecognisedClient {
  isReady(): boolean
  /** Whether there is more than one server. */
  readonly cluster: boolean
  /** The slot of a key in a cluster. */
  readonly slotOf?: (key: string) => number
  send(args: readonly string[], key: string | undefined): Promise<unknown>
  /** Calls back each time it becomes ready, and at once if it is. */
  onReady(call: () => void): void
  subscribe(options: Omit<SubscriptionOptions<Listener>, 'dial'>): Subscribe
}
