/**
 * Receives messages from channels of a Redis server, on a separate connection that `Redial` keeps up. Messages
 * published while there is no connection are lost, so listeners are called each time it is up again.
 */

import type { Random } from '../../../core/random.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import { type Dialed, Redial } from '../topology/redial.js'

export interface MessageListener {
  onMessage(text: string): void
  /** Messages arrive from now on; earlier ones may have been missed. */
  onSubscribed(): void
}

export interface Subscription {
  close(): void
}

export type Subscribe = (
  channels: string | readonly string[],
  listener: MessageListener,
) => Subscription

/** The part of a connection that the subscription uses. */
export interface Listener {
  subscribe(channel: string, onMessage: (text: string) => void): Promise<unknown>
  /** Resolves if the connection is alive. Absent if the application's client checks that. */
  ping?(): Promise<unknown>
}

export interface SubscriptionOptions<T extends Listener> {
  dial: (lost: (problem: unknown) => void) => Promise<Dialed<T>> | Dialed<T>
  clock: Clock
  random: Random
  /** The Redis user may not subscribe. */
  denied?: (channel: string) => void
}

/** A dead connection on a quiet channel is not noticed otherwise. It is dropped after this time without a reply. */
const PING_MS = 5_000

export function openSubscription<T extends Listener>(
  { dial, clock, random, denied }: SubscriptionOptions<T>,
  channels: string | readonly string[],
  listener: MessageListener,
): Redial<T> {
  const subscribe = async (client: T, onMessage: (text: string) => void) => {
    for (const channel of typeof channels === 'string' ? [channels] : channels) {
      try {
        await client.subscribe(channel, onMessage)
      } catch (error) {
        if (error instanceof Error && error.message.startsWith('NOPERM')) denied?.(channel)
        throw error
      }
    }
  }
  return new Redial<T>({
    clock,
    random,
    dial: async (lost) => listening(await dial(lost), subscribe, listener, clock, lost),
  })
}

function listening<T extends Listener>(
  dialed: Dialed<T>,
  subscribe: (client: T, onMessage: (text: string) => void) => Promise<void>,
  listener: MessageListener,
  clock: Clock,
  lost: (problem: unknown) => void,
): Dialed<T> {
  const { client } = dialed
  let dropped = false
  let timer: Timer | undefined

  function watch(): void {
    if (dropped || client.ping === undefined) return
    let answered = false
    client.ping().then(() => {
      answered = true
    }, lost)
    timer = clock.schedule(PING_MS, () => {
      // If this process itself was busy, the reply may not have been read yet.
      clock.pollTurn(() => (answered ? watch() : lost(new Error('the server sent no data'))))
    })
    timer.unref()
  }
  return {
    client,
    async open() {
      await dialed.open()
      await subscribe(client, (text) => {
        if (!dropped) listener.onMessage(text)
      })
      if (dropped) return
      watch()
      listener.onSubscribed()
    },
    drop() {
      dropped = true
      timer?.cancel()
      dialed.drop()
    },
  }
}
