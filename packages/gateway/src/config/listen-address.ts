/** Address of the data port: a TCP port, or a Unix socket. */
import type { GatewayConfig } from './config.js'

const BACKLOG = 4_096

export type ListenAddress = { readonly backlog: number } & (
  | { readonly port: number; readonly host: string }
  | { readonly path: string }
)

export function listenAddress({
  listen,
  port,
  host,
}: Pick<GatewayConfig, 'listen' | 'port' | 'host'>): ListenAddress {
  return listen === undefined
    ? { port, host, backlog: BACKLOG }
    : { path: listen, backlog: BACKLOG }
}
