/** Which headers go through the gateway, and which stay on their side of it. */

/** Between two neighbours only (RFC 9110, 7.6.1), or made anew for each connection. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

const KEPT_FROM_VENDORS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'expect',
  'cookie',
  // A compressed answer could be neither framed nor read for what it cost.
  'accept-encoding',
])

const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'x-api-key'])

const KEPT_FROM_CLIENTS: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'set-cookie'])

export interface ForwardOptions {
  /** Set by us, whatever the client says. */
  readonly own: ReadonlySet<string>
  /** The client's own key goes on. */
  readonly credentials: boolean
}

/** Names and values in turn, as Node has read them, without those that stop here. */
export function headersForVendor(raw: readonly string[], options: ForwardOptions): string[] {
  const passed: string[] = []
  const named = namedByConnection(raw)
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    if (KEPT_FROM_VENDORS.has(name) || options.own.has(name)) continue
    if (!options.credentials && CREDENTIALS.has(name)) continue
    if (name.startsWith('spillway-') || named?.has(name)) continue
    passed.push(name, raw[i + 1] as string)
  }
  return passed
}

/** A connection header may name others that are for this hop alone. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined
  for (let i = 0; i < raw.length; i += 2) {
    if ((raw[i] as string).length !== 10 || (raw[i] as string).toLowerCase() !== 'connection')
      continue
    named = namesIn(raw[i + 1] as string, named)
  }
  return named
}

function namesIn(value: string, into: Set<string> | undefined): Set<string> | undefined {
  const names = value.toLowerCase()
  if (names === 'keep-alive' || names === 'close') return into
  const named = into ?? new Set()
  for (const name of names.split(',')) named.add(name.trim())
  return named
}

/** Into `passed`, which has what we say ourselves. */
export function addVendorHeaders(
  passed: Record<string, string | string[]>,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): void {
  const { connection } = headers
  const named = connection === undefined ? undefined : namesIn(String(connection), undefined)
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || KEPT_FROM_CLIENTS.has(name) || name.startsWith('spillway-')) continue
    if (named === undefined || !named.has(name)) passed[name] = value
  }
}
