/**
 * The key under which the answer to a request is cached. Requests have the same key if the vendor would get the same
 * question from the same caller. The key is a hash, so neither keys of callers nor prompts can be read from it.
 */
import { createHash } from 'node:crypto'
import type { CachedAnswerConfig } from '../config/config.js'
import type { ClientRequest } from '../request/client-http.js'
import type { RoutedRequest } from '../request/routed-request.js'
import type { Target } from '../routing/target.js'
import { canonicalJson } from './canonical-json.js'

/** Requests with a larger body are not cached: reading it again would take too long. */
const MAX_BODY_BYTES = 1_024 ** 2

/** Undefined if answers to this request are not cached. `target`: the first one of the route. */
export function requestKey(
  request: ClientRequest,
  routed: RoutedRequest,
  { vendor, config: { model, key }, forwarded }: Target,
  { shared, ignoreFields, ignoreHeaders }: CachedAnswerConfig,
): string | undefined {
  const { method = 'GET', headers, rawHeaders } = request
  const { protocol } = vendor
  // Other requests change something at the vendor, so an old answer would be wrong.
  if (method !== 'GET' && !(method === 'POST' && protocol.repeatable(routed.path))) return undefined
  const body = bodyOf(routed, matcherOf(ignoreFields))
  if (body === undefined) return undefined
  const passed = forwarded.of(rawHeaders, headers.connection)
  const caller = shared ? null : [routed.caller.user, routed.callerKey ?? null]
  const question = [
    [vendor.name, vendor.url, key ?? null, model ?? null],
    [method, routed.path, routed.query],
    sortedPairs(passed, matcherOf(ignoreHeaders)),
    caller,
    body,
  ]
  return createHash('sha256').update(JSON.stringify(question)).digest('base64url')
}

/** Empty without a body. Undefined if the body was not read, or `canonicalJson` refuses it. */
function bodyOf(
  { parsed: { body, json } }: RoutedRequest,
  isIgnored: (field: string) => boolean,
): string | undefined {
  if (body.kind === 'streamed' || body.bytes.length > MAX_BODY_BYTES) return undefined
  if (body.bytes.length === 0) return ''
  return json && canonicalJson(body.bytes.toBuffer().toString(), isIgnored)
}

/** Names and values alternate in `headers`. Values of one name keep their order. */
function sortedPairs(
  headers: readonly string[],
  isIgnored: (name: string) => boolean,
): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    // The length depends on white space, which is not part of the key.
    if (name !== 'content-length' && !isIgnored(name)) pairs.push([name, headers[i + 1] as string])
  }
  return pairs.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
}

/** A pattern is an exact name, or a prefix followed by `*`. */
export function matcherOf(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns)
  const prefixes = patterns.filter((each) => each.endsWith('*')).map((each) => each.slice(0, -1))
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}
