/** All scripts run on one server: the configured one, or the master that the Sentinels name. */
import { refuse } from '../../../core/errors.js'
import { kindOf, OFFLINE } from '../connection/failure-kind.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { openSubscription } from '../connection/subscription.js'
import type { Connection, Lost } from '../drivers/driver.js'
import { subscribeDenied } from '../setup/access.js'
import type { Address } from './address.js'
import type { Dialler, Wanted } from './dial.js'
import { type Dialed, Redial } from './redial.js'
import { createSilentConnectionCheck } from './silent-connection.js'

export function connectServer(address: Address, dialler: Dialler): RedisConnection {
  return serverAt((wanted, lost) => dialler.dial(address, wanted, lost), dialler)
}

export interface ServerConnection extends RedisConnection {
  /** Drops all connections and connects again without waiting. */
  move(why: Error): void
}

const SCRIPTS: Wanted = { expected: 'server', scripts: true }
const MESSAGES: Wanted = { expected: 'server' }

/** `dial` may connect to another server each time. */
export function serverAt(
  dial: (wanted: Wanted, lost: Lost) => Promise<Dialed<Connection>>,
  { clock, random, warn }: Pick<Dialler, 'clock' | 'random' | 'warn'>,
  closing: () => void = () => {},
): ServerConnection {
  const main = new Redial<Connection>({ dial: (lost) => dial(SCRIPTS, lost), clock, random })
  const subscriptions = new Set<Redial<Connection>>()
  const hangUp = (why: Error) => {
    for (const each of [main, ...subscriptions]) each.hangUp(why)
  }
  return {
    get ready() {
      return main.client?.ready === true
    },
    get problem() {
      return main.problem
    },
    send(args) {
      const { client } = main
      return client?.ready === true ? client.send(args) : refuse(new Error(OFFLINE))
    },
    kindOf,
    checkAlive: createSilentConnectionCheck(main, clock),
    reconnect: hangUp,
    move(why) {
      hangUp(why)
      for (const each of [main, ...subscriptions]) each.dialNow()
    },
    subscribe(channel, listener) {
      const redial = openSubscription(
        { dial: (lost) => dial(MESSAGES, lost), clock, random, denied: subscribeDenied(warn) },
        channel,
        listener,
      )
      subscriptions.add(redial)
      return {
        close() {
          subscriptions.delete(redial)
          redial.close()
        },
      }
    },
    async close() {
      closing()
      main.close()
    },
  }
}
