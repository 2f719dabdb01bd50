/** What is asked of a client that the application already has, whichever library it is of. */
import type { Listener, Subscribe, SubscriptionOptions } from '../connection/subscription.js'

export interface RecognisedClient {
  isReady(): boolean
  /** There is more than one server. */
  readonly cluster: boolean
  /** In which part of a cluster a key is. */
  readonly slotOf?: (key: string) => number
  send(args: readonly string[], key: string | undefined): Promise<unknown>
  /** Calls back each time it becomes ready, and at once if it is. */
  onReady(call: () => void): void
  subscribe(options: Omit<SubscriptionOptions<Listener>, 'dial'>): Subscribe
}
