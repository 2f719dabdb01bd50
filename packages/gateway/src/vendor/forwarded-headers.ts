/** Decides which headers the gateway forwards to vendors and to clients. */
import { remembered } from 'spillway/internal'
import { KEY_HEADERS } from '../request/key-headers.js'
import type { VendorAddresses } from './vendor-addresses.js'

/** Headers of one connection, which are not forwarded (RFC 9110, 7.6.1). */
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

/** Headers by which a client could pretend another address, host or method. They are dropped. */
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

/** They decide how the body is read. Many servers treat _ as -, so the spelling with _ is dropped. */
const BODY_HEADERS: ReadonlySet<string> = new Set(['content-type', 'content-encoding'])

const CREDENTIALS: ReadonlySet<string> = new Set(KEY_HEADERS)

const KEPT_FROM_CLIENTS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'set-cookie',
  // These apply to the vendor's host, not to the gateway's.
  'alt-svc',
  'clear-site-data',
  'public-key-pins',
  'strict-transport-security',
  'forwarded',
  'via',
  // A server in front of the gateway would answer with one of its own files.
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
  /** Headers that the gateway sets itself. The client's are dropped. */
  readonly own: ReadonlySet<string>
  /** Forward the client's own key. */
  readonly credentials: boolean
  /** The vendor may compress its answers: nothing in them has to be read. */
  readonly compression: boolean
}

/** Filters the headers of requests to one target. The decision for each name is cached. */
export class ForwardedHeaders {
  readonly #options: ForwardOptions
  /** By the name as the client writes it: the name to forward, or empty if it is dropped. */
  readonly #forwarded = remembered((written) => {
    const name = written.toLowerCase()
    return this.#isDropped(name) ? '' : name
  })

  constructor(options: ForwardOptions) {
    this.#options = options
  }

  /** Whether the client's own key is forwarded. */
  get credentials(): boolean {
    return this.#options.credentials
  }

  /** The headers to forward. `raw` and the result: names and values alternate. */
  of(raw: readonly string[], connection: string | undefined): string[] {
    const passed: string[] = []
    // A Connection header may name further headers that are for this connection only.
    const named = connection === undefined ? undefined : namesIn(connection)
    for (let i = 0; i < raw.length; i += 2) {
      const name = this.#forwarded(raw[i] as string)
      if (name !== '' && (named === undefined || !named.has(name))) {
        passed.push(name, raw[i + 1] as string)
      }
    }
    return passed
  }

  #isDropped(name: string): boolean {
    // Many servers treat _ as -.
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

/** Whether a vendor's header is dropped, forwarded, or forwarded with its address rewritten. */
type HeaderHandling = 'drop' | 'forward' | 'rewrite'

const handlingOf: (name: string) => HeaderHandling = remembered((name) => {
  const isDropped = KEPT_FROM_CLIENTS.has(name) || KEPT_GROUPS.test(name)
  return isDropped ? 'drop' : ADDRESSES.has(name) ? 'rewrite' : 'forward'
})

/** The value of a header; several are joined by commas. In `headers`, names and values alternate. */
export function headerValue(headers: readonly string[], name: string): string | undefined {
  let value: string | undefined
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue
    value = value === undefined ? headers[i + 1] : `${value}, ${headers[i + 1]}`
  }
  return value
}

/** Appends the vendor's headers to `passed`, except those in `ours`. Names and values alternate. */
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
    const handling = handlingOf(name)
    if (handling === 'drop' || ours.includes(name) || named?.has(name) === true) continue
    const value = headers[i + 1] as string
    passed.push(name, handling === 'rewrite' ? addresses.here(value) : value)
  }
}
