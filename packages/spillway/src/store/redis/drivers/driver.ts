/**
 * Interface of a client library: one connection, commands in order, and closing. Discovery, routing and reconnecting
 * are implemented here for all libraries, because some of them resend commands that may already have run.
 */
import type { ConnectionOptions } from 'node:tls'
import type { Address } from '../topology/address.js'
import type { Dialed } from '../topology/redial.js'

/** One connection to one server. */
export interface Connection {
  readonly ready: boolean
  /** Sends in the order of the calls, at once or never, and nothing twice. */
  send(args: readonly string[]): Promise<unknown>
  subscribe(channel: string, onMessage: (text: string) => void): Promise<unknown>
  ping(): Promise<unknown>
}

export type Lost = (problem: unknown) => void

export interface Driver {
  /** Prepares a connection without opening it. `lost` is called when it breaks. Does not log in. */
  prepare(address: Address, tls: ConnectionOptions | undefined, lost: Lost): Dialed<Connection>
}

/** For TCP and TLS; `Redial` limits the rest of the handshake. */
export const CONNECT_MS = 3_000
