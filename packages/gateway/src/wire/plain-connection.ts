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
  /** So long it may be silent: before its first request, and between two. */
  readonly headersMs: number
  readonly idleMs: number
  onRequest(request: PlainRequest, response: PlainResponse): void
  /** It is for Node, and whatever was read of it will be read again. */
  onOther(socket: Socket): void
  /** It ended in the middle of a head. */
  onCut(socket: Socket): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** Of what comes before its time. */
const MOST_EARLY_BYTES = 65_536

export class PlainConnection implements ResponseOwner {
  readonly keepAlive: string
  readonly #socket: Socket
  readonly #owner: PlainOwner
  #request: PlainRequest | undefined
  /** Nothing, once it has been answered. The rest of its request may still come. */
  #response: PlainResponse | undefined
  /** The beginning of a head, or what came behind a request that is not over. */
  #rest: Buffer | undefined
  #silentSinceMs = performance.now()
  #used = false

  constructor(socket: Socket, owner: PlainOwner) {
    this.#socket = socket
    this.#owner = owner
    const seconds = Math.floor(owner.idleMs / 1_000)
    this.keepAlive = `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n`
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    socket.on('error', this.#onError)
    socket.on('close', this.#onClose)
  }

  /** Now and then: whether it may stay as it is. */
  look(nowMs: number): void {
    if (this.#request !== undefined) return
    // A head that comes so slowly is watched by Node.
    if (this.#rest !== undefined) return this.#handOver(this.#rest)
    const { headersMs, idleMs } = this.#owner
    const patienceMs = this.#used ? idleMs : headersMs
    if (nowMs - this.#silentSinceMs > patienceMs) this.#socket.destroy()
  }

  // What its response says.

  onAnswered(keepsAlive: boolean): void {
    this.#response = undefined
    if (!keepsAlive) this.#socket.destroySoon()
    else if (this.#request?.complete === true) this.#rested()
    // Nobody wants what is still to come of it.
    else this.#request?.resume()
  }

  // What its socket says.

  readonly #onData = (bytes: Buffer) => {
    if (this.#request === undefined) return this.#readHead(bytes)
    const behind = this.#request.take(bytes)
    if (behind !== undefined) this.#keep(behind)
    if (this.#response === undefined && this.#request.complete) this.#rested()
  }

  /** Whoever stops talking does not listen any more, either. */
  readonly #onEnd = () => {
    if (this.#request === undefined && this.#rest !== undefined) this.#owner.onCut(this.#socket)
    else this.#socket.end()
  }

  readonly #onDrain = () => {
    this.#response?.drained()
  }

  readonly #onError = () => {
    // It is closed next.
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
    this.#silentSinceMs = performance.now()
    // Whoever does not wait for an answer does so again, and Node knows how to deal with that.
    if (this.#rest !== undefined) this.#handOver(this.#rest)
  }

  #handOver(read: Buffer): void {
    const socket = this.#socket
    this.#rest = undefined
    // Or what is put back would leave before anybody is there to read it.
    socket.pause()
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('drain', this.#onDrain)
    socket.off('error', this.#onError)
    socket.off('close', this.#onClose)
    socket.unshift(read)
    this.#owner.onOther(socket)
    socket.resume()
  }
}
