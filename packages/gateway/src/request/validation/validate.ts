/**
 * Checks of a request's head before routing. Node's parser has already refused invalid HTTP. This refuses valid HTTP
 * that is unsafe or unsupported: duplicate headers, heads that two servers could read differently, and features that
 * the gateway does not have.
 */
import type { ServerLimits } from '../../config/shapes/server-limits-shape.js'
import type { Fault } from '../../response/errors.js'
import { type ClientRequest, hasBody, hostOf } from '../client-http.js'
import { faultInUrl, splitAuthority } from './request-url.js'
import { isShort, LONGEST_NAME } from './short-text.js'

const METHODS: ReadonlySet<string | undefined> = new Set([
  'POST',
  'GET',
  'HEAD',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

/** Headers that may occur once, because two servers could use different ones of two. One bit for each. */
const SINGLE: ReadonlyMap<string, number> = new Map([
  ['host', 1],
  ['upgrade', 2],
  ['x-api-key', 4],
  ['content-type', 8],
  ['authorization', 16],
  ['content-length', 32],
  ['idempotency-key', 64],
  ['content-encoding', 128],
  ['transfer-encoding', 256],
  ['spillway-deadline-ms', 512],
  ['spillway-user', 1_024],
  ['spillway-tier', 2_048],
  ['spillway-priority', 4_096],
  ['x-goog-api-key', 8_192],
  ['api-key', 16_384],
])
const IS_SINGLE_LENGTH: readonly boolean[] = Array.from({ length: 21 }, (_, length) =>
  [...SINGLE.keys()].some((name) => name.length === length),
)
/** Limits, logs and job queues remember these names for longer than the request lasts. */
const NAMES = ['spillway-user', 'spillway-tier'] as const
/**
 * Many servers ignore the body of these requests and read it as the next request of the connection, which the
 * gateway shares between callers.
 */
const BODILESS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])
const NO_LENGTH = /^0*$/
const HOST = /^[\w.:[\]-]*$/

export function validateRequest(request: ClientRequest, limits: ServerLimits): Fault | undefined {
  const { method, url = '', rawHeaders: raw, headers } = request
  if (!METHODS.has(method))
    return refused(501, 'METHOD_NOT_SUPPORTED', `the method ${method} is not supported`)
  const isHttp2 = request.stream !== undefined
  if (request.httpVersionMajor !== 1 && !isHttp2) {
    return refused(505, 'HTTP_VERSION', 'the HTTP version must be 1.1, or 2 over TLS')
  }
  if (url.length > limits.maxUrlBytes) {
    const message = `the URL is longer than server.maxUrlBytes (${limits.maxUrlBytes} bytes)`
    return refused(414, 'URL_TOO_LONG', message)
  }
  if (raw.length > 2 * limits.maxHeaders) {
    return refused(
      431,
      'TOO_MANY_HEADERS',
      `the request has more headers than server.maxHeaders (${limits.maxHeaders})`,
    )
  }
  return (
    faultInUrl(splitAuthority(url).path) ??
    faultInHost(request, url) ??
    faultInHeaders(raw) ??
    faultInNames(headers) ??
    faultInFraming(request, headers)
  )
}

function faultInHost(request: ClientRequest, url: string): Fault | undefined {
  const host = hostOf(request)
  const isOld = request.httpVersionMajor === 1 && request.httpVersionMinor === 0
  if (host === undefined ? !isOld : !HOST.test(host))
    return malformed('the Host header is missing or invalid')
  // If URL and header name different hosts, two servers could use different ones.
  const isSame = isAlike(splitAuthority(url).authority, host) && isAlike(request.headers.host, host)
  return isSame ? undefined : malformed('the URL and the headers name different hosts')
}

function isAlike(other: string | undefined, host: string | undefined): boolean {
  return other === undefined || other === host || other.toLowerCase() === host?.toLowerCase()
}

function faultInHeaders(raw: readonly string[]): Fault | undefined {
  let seen = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (IS_SINGLE_LENGTH[name.length] !== true) continue
    const bit = SINGLE.get(name.toLowerCase())
    if (bit === undefined) continue
    if ((seen & bit) !== 0) return malformed(`the header ${name.toLowerCase()} occurs twice`)
    seen |= bit
  }
  return undefined
}

function faultInNames(headers: ClientRequest['headers']): Fault | undefined {
  for (const name of NAMES) {
    const value = headers[name]
    if (typeof value !== 'string' || isShort(value)) continue
    const message = `the header ${name} has ${value.length} characters; at most ${LONGEST_NAME} are allowed`
    return refused(400, 'NAME_TOO_LONG', message)
  }
  return undefined
}

function faultInFraming(
  request: ClientRequest,
  headers: ClientRequest['headers'],
): Fault | undefined {
  const { upgrade, expect, 'transfer-encoding': coding, 'content-length': length } = headers
  const isOld = request.httpVersionMajor === 1 && request.httpVersionMinor === 0
  if (coding !== undefined && (isOld || coding.toLowerCase() !== 'chunked')) {
    return refused(501, 'TRANSFER_ENCODING', 'the only supported transfer-encoding is chunked')
  }
  if (BODILESS.has(request.method) && (hasBody(request) || !NO_LENGTH.test(length ?? ''))) {
    return refused(400, 'UNEXPECTED_BODY', `a ${request.method} request must not have a body`)
  }
  // Some clients offer an upgrade to HTTP/2 (h2c) with their first request. It may be ignored.
  if (upgrade !== undefined && upgrade.toLowerCase() !== 'h2c') {
    return refused(
      501,
      'UPGRADE',
      'upgrades to another protocol, such as WebSocket, are not supported',
    )
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return refused(
      417,
      'EXPECTATION_FAILED',
      'the only supported value of the Expect header is 100-continue',
    )
  }
  return undefined
}

function malformed(message: string): Fault {
  return refused(400, 'MALFORMED_REQUEST', message)
}

/** The connection is closed after the answer. */
function refused(status: number, code: string, message: string): Fault {
  return { status, code, message, closes: true }
}
