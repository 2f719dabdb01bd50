/** Finds a gateway that sends a vendor's key for every client that can reach its port. */
import type { GatewayConfig } from './config.js'

type Access = Pick<GatewayConfig, 'callers' | 'host' | 'listen' | 'port' | 'vendors'>

/** Names of headers that usually contain a key. */
const CREDENTIAL = /authorization|(^|[-_])(key|token)$/i

export const CLOSE_ACCESS = 'set callers, or host: 127.0.0.1'

/** A warning; undefined if only known callers, or only this machine, can use the keys. */
export function openAccess(config: Access): string | undefined {
  const { callers, host, listen, port, vendors } = config
  if (callers !== undefined || listen !== undefined || isLoopback(host)) return undefined
  if (!vendors.some((each) => each.url !== 'mock' && hasCredentials(each))) return undefined
  return `open to everyone who can reach port ${port}, with your vendor key`
}

/** Whether only this machine reaches an address. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host)
}

/** The configuration has a key for this vendor, or a header with one. */
export function hasCredentials({ keys, headers }: GatewayConfig['vendors'][number]): boolean {
  return keys.length > 0 || Object.keys(headers).some((name) => CREDENTIAL.test(name))
}
