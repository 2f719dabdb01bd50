/**
 * What we need of a client library: one connection, commands in order, and an end. Where servers are,
 * which of them is asked and what happens after a loss is the same for all libraries, so none of them
 * is trusted with it: some send again what may have run already.
 */
import type { ConnectionOptions } from 'node:tls'
import type { Address } from '../topology/address.js'
import type { Line } from '../topology/redial.js'

/** One connection to one server. */
export interface Connection {
  readonly ready: boolean
  /** Sends in the order of the calls, at once or never, and nothing twice. */
  send(args: readonly string[]): Promise<unknown>
  subscribe(channel: string, hear: (text: string) => void): Promise<unknown>
  ping(): Promise<unknown>
}

export type Lost = (problem: unknown) => void

export interface Driver {
  /** A connection that is not made yet; `lost` is called when it breaks. No login, no question asked. */
  line(address: Address, tls: ConnectionOptions | undefined, lost: Lost): Line<Connection>
}

/** TCP and TLS; `Redial` watches over the rest of the way. */
export const CONNECT_MS = 3_000
