/**
 * Node's HTTP servers behind the data port. They do not listen: the data server hands them its connections. With TLS,
 * the client chooses between HTTP/2 and HTTP/1.1 by ALPN.
 */
import { createServer as createHttp1, type Server } from 'node:http'
import { createServer as createHttp2, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import type { ServerLimits, TlsConfig } from '../config/shapes/server-limits-shape.js'
import type { ClientRequest, ClientResponse } from '../request/client-http.js'

export interface HttpHandlers {
  /** `expectsContinue`: the client sends its body only after a 100. */
  onRequest(request: ClientRequest, response: ClientResponse, expectsContinue: boolean): void
  /** A CONNECT of HTTP/1.1. Node has detached its parser from the connection. */
  onTunnel(socket: Socket): void
  /** `code`: the parser's, such as `HPE_INVALID_METHOD`. */
  onParserError(code: string | undefined, socket: Socket): void
  /** A connection that carries HTTP/1.1, after its TLS handshake if there is one. */
  onHttp1(socket: Socket): void
  /** `socket`: the one below, which `session.socket` does not allow to destroy. */
  onHttp2(session: ServerHttp2Session, socket: Socket): void
}

/** HTTP/2: requests at once on one connection. */
const MAX_STREAMS = 100

/** Answers with the function that takes new connections. */
export function createHttpServers(
  limits: ServerLimits,
  handlers: HttpHandlers,
): (socket: Socket) => void {
  const http1 = createHttp1Server(limits, handlers)
  const serveHttp1 = (socket: Socket) => {
    handlers.onHttp1(socket)
    http1.emit('connection', socket)
  }
  if (limits.tls === undefined) return serveHttp1
  const http2 = createHttp2Server(limits, handlers)
  const tls = createTlsServer(limits.tls, limits, (socket) => {
    if (socket.alpnProtocol !== 'h2') return serveHttp1(socket)
    const onSession = (session: ServerHttp2Session) => handlers.onHttp2(session, socket)
    http2.once('session', onSession)
    http2.emit('connection', socket)
    // Node emits 'session' at once, or not at all.
    http2.off('session', onSession)
  })
  return (socket) => void tls.emit('connection', socket)
}

function createHttp1Server(limits: ServerLimits, handlers: HttpHandlers): Server {
  const server = createHttp1({
    insecureHTTPParser: false,
    maxHeaderSize: limits.maxHeaderBytes,
    keepAliveTimeout: limits.idleMs,
    // Checked by `Http1Connection` and `Exchange`: Node checks times only on servers that listen themselves.
    headersTimeout: 0,
    requestTimeout: 0,
    // Checked in `validate.ts`, where the refusal is recorded.
    requireHostHeader: false,
  })
  // Counted in `validate.ts`. Node would drop the headers beyond this number silently.
  server.maxHeadersCount = 0
  handleRequests(server, handlers)
  server.on('connect', (_, socket: Socket) => handlers.onTunnel(socket))
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) =>
    handlers.onParserError(code, socket),
  )
  return server
}

function createHttp2Server(limits: ServerLimits, handlers: HttpHandlers): Http2Server {
  const server = createHttp2({
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: limits.maxHeaderBytes,
      enablePush: false,
    },
    // Room for the four pseudo headers, and for one header too many, which `validate.ts` refuses with 431.
    maxHeaderListPairs: limits.maxHeaders + 5,
    maxSessionMemory: 10,
  })
  handleRequests(server, handlers)
  server.on('connect', (request, response) => onRequest(handlers, request, response, false))
  // The session is destroyed, which ends its requests.
  server.on('sessionError', () => {})
  return server
}

function createTlsServer(
  { cert, key }: TlsConfig,
  { headersMs }: ServerLimits,
  onSecure: (socket: TLSSocket) => void,
) {
  const server = createTls({
    cert,
    key,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: headersMs,
    minVersion: 'TLSv1.2',
  })
  server.on('secureConnection', onSecure)
  // Most often a scan, or a client that does not trust the certificate.
  server.on('tlsClientError', (_, socket) => socket.destroy())
  return server
}

function handleRequests(server: Server | Http2Server, handlers: HttpHandlers): void {
  const emitter = server as Server
  emitter.on('request', (request, response) => onRequest(handlers, request, response, false))
  emitter.on('checkContinue', (request, response) => onRequest(handlers, request, response, true))
  emitter.on('checkExpectation', (request, response) =>
    onRequest(handlers, request, response, false),
  )
}

function onRequest(
  handlers: HttpHandlers,
  request: unknown,
  response: unknown,
  expectsContinue: boolean,
): void {
  handlers.onRequest(request as ClientRequest, response as ClientResponse, expectsContinue)
}
