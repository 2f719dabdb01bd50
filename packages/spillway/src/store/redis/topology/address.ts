/** Addresses of Redis servers, and their URLs. */

export type Address = { readonly host: string; readonly port: number } | { readonly path: string }

export interface ServerUrl {
  readonly address: Address
  /** With TLS. */
  readonly secure: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

const DEFAULT_PORT = 6379
const TCP = /^rediss?:\/\/[^/?#]+(\/\d*)?$/
const UNIX = /^unix:\/\/(?:([^:@/]*):([^@/]*)@)?(\/.+)$/

/** Undefined if it is not the URL of a Redis server, or a `%` in its login is not escaped. */
export function parseServerUrl(text: string, defaultPort = DEFAULT_PORT): ServerUrl | undefined {
  try {
    return parse(text, defaultPort)
  } catch {
    return undefined
  }
}

function parse(text: string, defaultPort: number): ServerUrl | undefined {
  const unix = UNIX.exec(text)
  if (unix !== null) {
    const [, username, password, path = ''] = unix
    return { address: { path }, secure: false, ...login(username, password), database: 0 }
  }
  if (!TCP.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  return {
    address: {
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? defaultPort : Number(url.port),
    },
    secure: url.protocol === 'rediss:',
    ...login(url.username, url.password),
    database: Number(url.pathname.slice(1)),
  }
}

function login(username: string | undefined, password: string | undefined) {
  return {
    username: decodeURIComponent(username ?? '') || undefined,
    password: decodeURIComponent(password ?? '') || undefined,
  }
}

/** `host:port`, as cluster nodes name each other. The port follows the last colon. */
export function nameOf(address: Address): string {
  return 'path' in address ? address.path : `${address.host}:${address.port}`
}

export function addressNamed(name: string): { host: string; port: number } {
  const colon = name.lastIndexOf(':')
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
}
