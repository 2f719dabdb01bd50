/** Limits for clients of a port: sizes, timeouts, connections. Clients beyond them are disconnected. */
import { createSecureContext } from 'node:tls'
import { about, duration, integer, object, optional, together } from 'spillway/options'
import { size } from './byte-size.js'
import { pem, type Sources } from './secret-reference.js'

export interface TlsConfig {
  /** PEM: the certificate, with those between it and its authority. */
  readonly cert: string
  /** PEM. */
  readonly key: string
}

/** Limits of the data port for sizes, times and connections of clients. */
export interface ServerLimits {
  /** With it the data port serves HTTP/2 and HTTP/1.1 over TLS; without it plain HTTP/1.1. */
  readonly tls: TlsConfig | undefined

  /** Longest path with its query. A longer one is refused with 414. */
  readonly maxUrlBytes: number
  /** Size of all headers together, with the request line. More is refused with 431. */
  readonly maxHeaderBytes: number
  /** Number of headers. More are refused with 431. */
  readonly maxHeaders: number
  /** Time from the first byte, or from the connection, until the headers are complete. */
  readonly headersMs: number
  /** Time for a body, plus one second for each `bodyBytesPerSecond` of it. */
  readonly bodyMs: number
  /** Slowest rate of a body after `bodyMs`. */
  readonly bodyBytesPerSecond: number
  /** An answer that the client does not read for this time is cut off. */
  readonly unreadMs: number
  /** A connection without a request is closed after this time. */
  readonly idleMs: number
  /** Most connections at once. */
  readonly connections: number
  /** Most connections at once from one address: IPv4, or the first half of IPv6. */
  readonly connectionsPerAddress: number
}

const KB = 1_024

export const SERVER_LIMITS: ServerLimits = {
  tls: undefined,
  maxUrlBytes: 8 * KB,
  maxHeaderBytes: 16 * KB,
  maxHeaders: 100,
  headersMs: 10_000,
  bodyMs: 20_000,
  bodyBytesPerSecond: KB,
  unreadMs: 60_000,
  // Longer than the keep-alive of load balancers in front, so that none uses a connection that is being closed.
  idleMs: 75_000,
  connections: 20_000,
  connectionsPerAddress: 2_000,
}

export const readServerLimits = (sources: Sources) =>
  object({
    tls: about(
      'Serves HTTP/2 and HTTP/1.1 over TLS. Default: plain HTTP/1.1.',
      optional(readTls(sources)),
    ),
    maxUrlBytes: about(
      'Longest path with its query. A longer one is refused with 414.',
      optional(size({ min: 64 }), SERVER_LIMITS.maxUrlBytes),
    ),
    maxHeaderBytes: about(
      'Size of the request line and all headers. More is refused with 431.',
      optional(size({ min: KB }), SERVER_LIMITS.maxHeaderBytes),
    ),
    maxHeaders: about(
      'Number of headers. More are refused with 431.',
      optional(integer({ min: 1 }), SERVER_LIMITS.maxHeaders),
    ),
    headersMs: about(
      'Time from the first byte, or from the connection, until the headers are complete.',
      optional(duration({ min: 100 }), SERVER_LIMITS.headersMs),
    ),
    bodyMs: about(
      'Time for a body, plus one second for each `bodyBytesPerSecond` of it.',
      optional(duration({ min: 100 }), SERVER_LIMITS.bodyMs),
    ),
    bodyBytesPerSecond: about(
      'Slowest rate of a body after `bodyMs`, in bytes per second.',
      optional(size({ min: 1 }), SERVER_LIMITS.bodyBytesPerSecond),
    ),
    unreadMs: about(
      'An answer that the client does not read for this time is cut off.',
      optional(duration({ min: 100 }), SERVER_LIMITS.unreadMs),
    ),
    idleMs: about(
      'A connection without a request is closed after this time.',
      optional(duration({ min: 100 }), SERVER_LIMITS.idleMs),
    ),
    connections: about(
      'Most connections at once.',
      optional(integer({ min: 1 }), SERVER_LIMITS.connections),
    ),
    connectionsPerAddress: about(
      'Most connections at once from one address: IPv4, or the first half of IPv6.',
      optional(integer({ min: 1 }), SERVER_LIMITS.connectionsPerAddress),
    ),
  })

/** A certificate and a key that do not belong together would end every handshake. */
const readTls = (sources: Sources) =>
  together(
    object({
      cert: about(
        'Certificate in PEM format, with the intermediate ones: a reference.',
        pem(sources),
      ),
      key: about('Private key of the certificate in PEM format: a reference.', pem(sources)),
    }),
    ({ cert, key }, path, problems) => {
      if (cert === '' || key === '') return
      try {
        createSecureContext({ cert, key })
      } catch (error) {
        const { code = 'unknown error' } = error as { code?: string }
        problems.push({ path, message: `certificate and key are invalid (${code})` })
      }
    },
  )
