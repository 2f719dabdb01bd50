/**
 * One small server, twice: once all of it is Node's, once plain requests are read by us. Neither has a network
 * under it, so what comes in which piece is for the test to say, and nothing depends on time.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { readBody } from '../../src/data/request-body.js'
import type { ClientResponse } from '../../src/wire/client.js'
import {
  keepAliveLines,
  PlainConnection,
  type PlainOwner,
} from '../../src/wire/plain-connection.js'
import type { PlainRequest } from '../../src/wire/plain-request.js'
import { FakeSocket, turns } from '../fake-socket.js'

export interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: Record<string, unknown>
  /** In latin1; nothing, if it was not waited for or never came. */
  body: string | undefined
}

export interface Outcome {
  readonly requests: Seen[]
  /** Everything that was answered. */
  said: string
  /** What is wrong with it, in the parser's words. */
  refused: string | undefined
}

/** Of what was read by us. */
export interface Tally {
  plain: number
  handedOver: number
}

export interface How {
  readonly tally: Tally
  /**
   * A second passes before the end, and Node reads half a head. Otherwise the connection is cut
   * without inspecting what is wrong.
   */
  readonly looks: boolean
}

const IDLE_MS = 5_000
export const MOST_BODY_BYTES = 1_000
const BODY_LIMITS = { keepBytes: MOST_BODY_BYTES, maxBytes: 10_000_000 }
const DATE = /^Date: .*$/gm
/** Turns of the loop that any answer needs, with some to spare. */
const TURNS = 6

const PLAIN = Symbol('plain connection')

type Known = FakeSocket & { [PLAIN]?: PlainConnection }

/** `/early` is answered before its body is looked at, as a wrong key is; `/chunked` without a length. */
async function answer(
  request: IncomingMessage | PlainRequest,
  response: ClientResponse,
  seen: Seen,
): Promise<void> {
  if (!request.url?.startsWith('/early')) {
    const body = await readBody(request, BODY_LIMITS, () => {})
    seen.body = body.kind === 'whole' ? body.bytes.toString('latin1') : 'passing'
    if (body.kind === 'passing') for await (const _ of body.pieces);
  }
  const text = `${seen.method} ${seen.url} ${seen.body}`
  const length = request.url?.startsWith('/chunked') ? {} : { 'content-length': text.length }
  response.writeHead(200, { 'x-note': 'caf\xe9', ...length })
  response.end(text, 'latin1')
}

function createBoth(isPlain: boolean, outcome: Outcome, tally: Tally) {
  const open: { request: IncomingMessage | PlainRequest; response: ClientResponse }[] = []
  const handle = (request: IncomingMessage | PlainRequest, response: ClientResponse) => {
    const { method, url, headers } = request
    const seen: Seen = { method, url, headers: { ...headers }, body: undefined }
    const one = { request, response }
    outcome.requests.push(seen)
    open.push(one)
    response.once('close', () => open.splice(open.indexOf(one), 1))
    answer(request, response, seen).catch(() => response.destroy())
  }
  /** As the gateway does: whatever was whole before it is still answered. */
  const refuse = (code: string | undefined, socket: Socket) => {
    outcome.refused = code
    const whole = open.filter(({ request }) => request.complete).at(-1)
    if (whole === undefined) socket.destroy()
    else whole.response.once('finish', () => socket.destroySoon())
  }
  const server = createServer({ keepAliveTimeout: IDLE_MS, requireHostHeader: false }, handle)
  server.maxHeadersCount = 0
  server.on('checkExpectation', handle)
  server.on('connect', (_, socket: Socket) => refuse('CONNECT', socket))
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) =>
    refuse(code, socket),
  )
  if (isPlain) readPlainFirst(server, handle, refuse, tally)
  return server
}

function readPlainFirst(
  server: Server,
  handle: PlainOwner['onRequest'],
  refuse: (code: string, socket: Socket) => void,
  tally: Tally,
): void {
  const [toNode] = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  const owner: PlainOwner = {
    mostHeadBytes: 16_384,
    mostBodyBytes: MOST_BODY_BYTES,
    headersMs: IDLE_MS,
    idleMs: IDLE_MS,
    keepAlive: keepAliveLines(IDLE_MS),
    onRequest(request, response) {
      tally.plain++
      handle(request, response)
    },
    onOther(socket) {
      tally.handedOver++
      delete (socket as Socket & Known)[PLAIN]
      toNode?.call(server, socket)
    },
    onCut: (socket) => refuse('HPE_INVALID_EOF_STATE', socket),
  }
  server.on('connection', (socket: Socket & Known) => {
    socket[PLAIN] = new PlainConnection(socket, owner)
  })
}

/** What becomes of these pieces, one after the other, and then of an end. */
async function feed(pieces: readonly Buffer[], isPlain: boolean, how: How): Promise<Outcome> {
  const outcome: Outcome = { requests: [], said: '', refused: undefined }
  const server = createBoth(isPlain, outcome, how.tally)
  const socket: Known = new FakeSocket()
  socket.on('error', () => {})
  server.emit('connection', socket)
  for (const piece of pieces) {
    if (socket.destroyed) break
    socket.push(piece)
    await turns(TURNS)
  }
  if (how.looks) socket[PLAIN]?.look(performance.now())
  await turns(TURNS)
  if (!socket.destroyed) socket.push(null)
  await turns(TURNS)
  socket.destroy()
  await turns(TURNS)
  outcome.said = socket.said.replaceAll(DATE, 'Date: now')
  if (!how.looks && outcome.refused !== undefined) outcome.refused = 'anything'
  return outcome
}

export async function bothWays(pieces: readonly Buffer[], how: How) {
  // One after the other: a piece must not be shared.
  const copies = pieces.map((piece) => Buffer.from(piece))
  const ours = await feed(pieces, true, how)
  const nodes = await feed(copies, false, how)
  return { ours, nodes }
}
