/**
 * A client's request and the response to it, as Node's HTTP servers present them. HTTP/2 has the same interface as
 * HTTP/1.1, apart from the differences that these functions cover.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Clock } from 'spillway'

/** `stream`: only of HTTP/2. */
export type ClientRequest = IncomingMessage & { readonly stream?: ServerHttp2Stream }
export type ClientResponse = ServerResponse & { readonly stream?: ServerHttp2Stream }

type Headers = Readonly<Record<string, string | string[]>>

/** These belong to a connection of HTTP/1.1. HTTP/2 does not have them. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(['connection', 'keep-alive'])

/** HTTP/2: Node's `respond` throws if one of these has more than one value. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set(
  (
    'access-control-allow-credentials access-control-max-age access-control-request-method age authorization ' +
    'content-encoding content-language content-length content-location content-md5 content-range content-type date ' +
    'dnt etag expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified ' +
    'location max-forwards proxy-authorization range referer retry-after tk upgrade-insecure-requests user-agent ' +
    'x-content-type-options'
  ).split(' '),
)

/** Whether a body follows the headers. HTTP/2 needs no header for that. */
export function hasBody({ headers, stream }: ClientRequest): boolean {
  if (stream !== undefined) return !stream.endAfterHeaders
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The host that the client wants to reach. */
export function hostOf({ headers }: ClientRequest): string | undefined {
  return (headers[':authority'] as string | undefined) ?? headers.host
}

/** `headers`: an object, or names and values that alternate. */
export function writeHead(
  response: ClientResponse,
  status: number,
  headers: Headers | readonly string[],
): void {
  if (response.stream === undefined) {
    response.writeHead(status, headers as Headers | string[])
    return
  }
  // Headers of an earlier, failed `writeHead` would be sent as well.
  for (const name of response.getHeaderNames()) response.removeHeader(name)
  const entries = Array.isArray(headers) ? pairs(headers) : Object.entries(headers)
  // Without a prototype: a vendor may send a header named `constructor`.
  const all: Record<string, string | string[]> = Object.create(null)
  for (const [written, value] of entries) {
    const name = written.toLowerCase()
    if (CONNECTION_HEADERS.has(name)) continue
    if (all[name] === undefined) all[name] = value
    // The first value of a header that may have only one is kept.
    else if (!SINGLE_HEADERS.has(name)) all[name] = [all[name], value].flat()
  }
  // HTTP/2 of Node allows statuses up to 599. Higher ones count as server errors (RFC 9110, 15).
  response.writeHead(status > 599 ? 502 : status, all)
}

function* pairs(headers: readonly string[]): Generator<[string, string]> {
  for (let i = 0; i < headers.length; i += 2) yield [headers[i] as string, headers[i + 1] as string]
}

/** Answers that were sent whole although Node does not count them as finished, because their connections linger. */
const sentEarly = new WeakSet<ClientResponse>()

export function noteSent(response: ClientResponse): void {
  sentEarly.add(response)
}

/** The whole answer was handed to the operating system. A stream that its client has reset counts as finished in Node. */
export function isSent(response: ClientResponse): boolean {
  const { stream, writableFinished, writableEnded } = response
  if (stream !== undefined) return writableEnded && stream.rstCode === 0
  return writableFinished || sentEarly.has(response)
}

/** A client that reads nothing must not keep its connection for longer than this. */
const FLUSH_MS = 5_000

/**
 * Ends an answer that is incomplete so that the client notices it, once `last` and everything before it was sent:
 * HTTP/1.1 by closing the connection, HTTP/2 by resetting the stream.
 */
export function breakOff(
  response: ClientResponse,
  clock: Pick<Clock, 'schedule'>,
  last = '',
): void {
  const { stream, socket } = response
  if (stream !== undefined) {
    const reset = () => stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    if (last === '') reset()
    else response.write(last, reset)
    return
  }
  if (last !== '') response.write(last)
  if (socket === null) return void response.destroy()
  // Node 26 hands what was written to the socket only in the next tick, and would lose it.
  process.nextTick(() => socket.destroySoon())
  const timer = clock.schedule(FLUSH_MS, () => socket.destroy())
  timer.unref()
  socket.once('close', () => timer.cancel())
}

/** Call before the end of an answer that its client may never read. */
export function closeIfUnread(response: ClientResponse, clock: Pick<Clock, 'schedule'>): void {
  const { stream, socket } = response
  if (stream !== undefined || socket === null) return
  const timer = clock.schedule(FLUSH_MS, () => socket.destroy())
  timer.unref()
  response.once('finish', () => timer.cancel())
  response.once('close', () => timer.cancel())
}

/** Disconnects a client: the connection of HTTP/1.1, the stream of HTTP/2. */
export function disconnect({ stream, socket }: ClientRequest): void {
  if (stream === undefined) return void socket.destroy()
  stream.close(constants.NGHTTP2_CANCEL)
  // A reset alone waits behind the bytes that the client does not read.
  stream.destroy()
}
