/**
 * A client's connection, as long as its requests are plain: they are read here, one after the other, with
 * neither a parser's calls nor a stream in between. With the first that is not, all of it becomes Node's, with
 * whatever of it was read.
 */
import type { Socket } from 'node:net'
import { latin1 } from './latin1.js'
import { readPlainHead } from './plain-head.js'
import { PlainRequest } from './plain-request.js'
import { PlainResponse, type ResponseOwner } from './plain-response.js'

export interface PlainOwner {
  /** Longer heads and bodies are Node's. */
  readonly mostHeadBytes: number
  readonly mostBodyBytes: number
  /** So long it may be without a request: before its first one, and between two. */
  readonly headersMs: number
  readonly idleMs: number
  /** Header lines that say so. */
  readonly keepAlive: string
  onRequest(request: PlainRequest, response: PlainResponse): void
  /** It is for Node, and whatever was read of it will be read again. */
  onOther(socket: Socket): void
  /** It ended in the middle of a request. */
  onCut(socket: Socket): void
}

const POST = 'POST /'
const GET = 'GET /'
const HEAD_END = Buffer.from('\r\n\r\n')
/** Of what has to wait for its end, or for its turn: with each piece all of it is copied. */
const MOST_EARLY_BYTES = 16_384

/** As Node writes them. */
export function keepAliveLines(idleMs: number): string {
  return `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(idleMs / 1_000)}\r\n`
}

/** What begins otherwise is Node's at once, and does not wait for the end of its head. */
function mayBePlain(beginning: Buffer): boolean {
  const start = latin1(beginning, 0, Math.min(beginning.length, POST.length))
  return POST.startsWith(start) || GET.startsWith(start) || start.startsWith(GET)
}

export class PlainConnection implements ResponseOwner {
  readonly #socket: Socket
  readonly #owner: PlainOwner
  #request: PlainRequest | undefined
  /** Nothing, once it has been answered. The rest of its request may still come. */
  #response: PlainResponse | undefined
  /** The beginning of a head, or what came behind a request that is not over. */
  #rest: Buffer | undefined
  /** Since it was opened, or its last request was over. */
  #restsSinceMs = performance.now()
  #used = false

  constructor(socket: Socket, owner: PlainOwner) {
    this.#socket = socket
    this.#owner = owner
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    socket.on('close', this.#onClose)
  }

  /** Part of a request is here that nobody has been told of. */
  get hasMore(): boolean {
    return this.#rest !== undefined
  }

  /** Now and then: whether it may stay as it is. */
  look(nowMs: number): void {
    if (this.#response !== undefined || this.#socket.destroyed) return
    // A head that comes so slowly is watched by Node.
    if (this.#rest !== undefined) return this.#handOver(this.#rest)
    const { headersMs, idleMs } = this.#owner
    const patienceMs = this.#used ? idleMs : headersMs
    if (nowMs - this.#restsSinceMs > patienceMs) this.#socket.destroy()
  }

  // What its response says.

  get keepAlive(): string {
    return this.#owner.keepAlive
  }

  onAnswered(keepsAlive: boolean): void {
    this.#response = undefined
    this.#restsSinceMs = performance.now()
    if (!keepsAlive) this.#leave()
    else if (this.#request?.complete === true) this.#rested()
    // Nobody wants what is still to come of it, but before the next request it must come.
    else this.#request?.resume()
  }

  // What its socket says.

  readonly #onData = (bytes: Buffer) => {
    if (this.#request === undefined) return this.#readHead(bytes)
    const behind = this.#request.take(bytes)
    if (behind !== undefined) this.#keep(behind)
    if (this.#response !== undefined || !this.#request.complete) return
    this.#restsSinceMs = performance.now()
    this.#rested()
  }

  /** Whoever stops talking does not listen any more, either; but for what is wrong with half a request. */
  readonly #onEnd = () => {
    const isCut = this.#rest !== undefined || this.#request?.complete === false
    this.#rest = undefined
    if (isCut) this.#owner.onCut(this.#socket)
    else this.#socket.end()
  }

  readonly #onDrain = () => {
    this.#response?.drained()
  }

  readonly #onClose = () => {
    this.#request?.cut()
    this.#response?.closed()
    this.#request = undefined
    this.#response = undefined
    this.#rest = undefined
  }

  #readHead(bytes: Buffer): void {
    const all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    this.#rest = undefined
    const { mostHeadBytes, mostBodyBytes } = this.#owner
    const end = all.indexOf(HEAD_END)
    if ((end === -1 ? all.length : end) > mostHeadBytes) return this.#handOver(all)
    if (end === -1) {
      if (all.length > MOST_EARLY_BYTES || !mayBePlain(all)) return this.#handOver(all)
      this.#rest = all
      return
    }
    const head = readPlainHead(latin1(all, 0, end))
    if (head === undefined || head.bodyBytes > mostBodyBytes) return this.#handOver(all)
    const request = new PlainRequest(head, this.#socket)
    // Another one comes behind it: Node answers to both at once.
    if (request.take(all.subarray(end + HEAD_END.length)) !== undefined) return this.#handOver(all)
    const response = new PlainResponse(this.#socket, this)
    this.#request = request
    this.#response = response
    this.#used = true
    this.#owner.onRequest(request, response)
  }

  /** The next request, before its turn. */
  #keep(bytes: Buffer): void {
    this.#rest = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    if (this.#rest.length > MOST_EARLY_BYTES) this.#socket.pause()
  }

  /** Ready for another. */
  #rested(): void {
    this.#request = undefined
    // Whoever does not wait for an answer does so again, and Node knows how to deal with that.
    if (this.#rest !== undefined) this.#handOver(this.#rest)
  }

  /** It has been told that nothing else will be read: what still comes is forgotten. */
  #leave(): void {
    const socket = this.#socket
    this.#request = undefined
    this.#rest = undefined
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.resume()
    socket.destroySoon()
  }

  #handOver(read: Buffer): void {
    const socket = this.#socket
    this.#rest = undefined
    if (socket.destroyed) return
    // Or what is put back would leave before anybody is there to read it.
    socket.pause()
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('drain', this.#onDrain)
    socket.off('close', this.#onClose)
    socket.unshift(read)
    this.#owner.onOther(socket)
    socket.resume()
  }
}
