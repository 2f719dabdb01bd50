/** Which headers go through the gateway, and which stay on their side of it. */
import { isShort } from '../request/short-text.js'
import type { VendorAddresses } from './vendor-addresses.js'

/** Between two neighbours only (RFC 9110, 7.6.1), or made anew for each connection. */
const HOP_BY_HOP = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Who a client is, where it wanted to go, by what method: said by us or not at all. */
const SPOOFED = [
  'cf-connecting-ip',
  'client-ip',
  'fastly-client-ip',
  'forwarded',
  'front-end-https',
  'max-forwards',
  // Becomes HTTP_PROXY in the environment of a CGI program.
  'proxy',
  'true-client-ip',
  'via',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-host',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-host',
  'x-original-url',
  'x-real-ip',
  'x-rewrite-url',
]
const SPOOFED_GROUPS = /^(x-forwarded-?|x-envoy-|spillway-)/

const KEPT_FROM_VENDORS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...SPOOFED,
  'host',
  'content-length',
  'expect',
  'cookie',
])

/** They decide how the body is read. To many servers _ and - are the same, so the other spelling is dropped. */
const BODY_HEADERS: ReadonlySet<string> = new Set(['content-type', 'content-encoding'])

const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'x-api-key'])

const KEPT_FROM_CLIENTS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'set-cookie',
  // The vendor's word about its own host, not about ours.
  'alt-svc',
  'clear-site-data',
  'public-key-pins',
  'strict-transport-security',
  'forwarded',
  'via',
  // A server in front of us would send a file of its own.
  'x-sendfile',
  'x-lighttpd-send-file',
])
const ADDRESSES: ReadonlySet<string> = new Set([
  'location',
  'content-location',
  'operation-location',
])
const KEPT_GROUPS = /^(spillway-|x-accel-|x-forwarded-|x-envoy-)/

export interface ForwardOptions {
  /** Set by us, whatever the client says. */
  readonly own: ReadonlySet<string>
  /** The client's own key goes on. */
  readonly credentials: boolean
  /** The vendor may compress its answers: nothing in them has to be read. */
  readonly compression: boolean
}

/** Names come from requests: no request may fill the memory. */
const MOST_NAMES = 500

/** What becomes of each header on its way to one target. Names repeat, so each is looked at once. */
export class ForwardedHeaders {
  readonly #options: ForwardOptions
  /** As clients write them; empty: it stays here. */
  readonly #names = new Map<string, string>()

  constructor(options: ForwardOptions) {
    this.#options = options
  }

  /** Names and values in turn, as Node has read them, without those that stop here. */
  of(raw: readonly string[], connection: string | undefined): string[] {
    const passed: string[] = []
    // A connection header may name others that are for this hop alone.
    const named = connection === undefined ? undefined : namesIn(connection)
    for (let i = 0; i < raw.length; i += 2) {
      const written = raw[i] as string
      const name = this.#names.get(written) ?? this.#learn(written)
      if (name !== '' && (named === undefined || !named.has(name))) {
        passed.push(name, raw[i + 1] as string)
      }
    }
    return passed
  }

  #learn(written: string): string {
    const name = written.toLowerCase()
    const passed = this.#stays(name) ? '' : name
    if (!isShort(written)) return passed
    if (this.#names.size >= MOST_NAMES) this.#names.clear()
    this.#names.set(written, passed)
    return passed
  }

  #stays(name: string): boolean {
    // To many servers _ and - are the same.
    const plain = name.replaceAll('_', '-')
    const { own, credentials, compression } = this.#options
    // Pseudo headers of HTTP/2.
    if (name.startsWith(':')) return true
    if (KEPT_FROM_VENDORS.has(plain) || SPOOFED_GROUPS.test(plain)) return true
    if (name !== plain && BODY_HEADERS.has(plain)) return true
    if (plain === 'accept-encoding') return !compression
    return own.has(name) || own.has(plain) || (!credentials && CREDENTIALS.has(plain))
  }
}

function namesIn(connection: string): Set<string> | undefined {
  const names = connection.toLowerCase()
  if (names === 'keep-alive' || names === 'close') return undefined
  return new Set(names.split(',').map((name) => name.trim()))
}

/** What becomes of a header on its way to a client. */
type Fate = 'stays' | 'passes' | 'address'
const fates = new Map<string, Fate>()

function fateOf(name: string): Fate {
  const known = fates.get(name)
  if (known !== undefined) return known
  const stays = KEPT_FROM_CLIENTS.has(name) || KEPT_GROUPS.test(name)
  const fate = stays ? 'stays' : ADDRESSES.has(name) ? 'address' : 'passes'
  if (!isShort(name)) return fate
  if (fates.size >= MOST_NAMES) fates.clear()
  fates.set(name, fate)
  return fate
}

/** Of a header that came once or more, from names and values in turn. */
export function headerValue(headers: readonly string[], name: string): string | undefined {
  let value: string | undefined
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue
    value = value === undefined ? headers[i + 1] : `${value}, ${headers[i + 1]}`
  }
  return value
}

/** Into `passed`, names and values in turn, but for those that are `ours` to say. */
export function addVendorHeaders(
  passed: string[],
  headers: readonly string[],
  ours: readonly string[],
  addresses: VendorAddresses,
): void {
  const connection = headerValue(headers, 'connection')
  const named = connection === undefined ? undefined : namesIn(connection)
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const fate = fateOf(name)
    if (fate === 'stays' || ours.includes(name) || named?.has(name) === true) continue
    const value = headers[i + 1] as string
    passed.push(name, fate === 'address' ? addresses.here(value) : value)
  }
}
