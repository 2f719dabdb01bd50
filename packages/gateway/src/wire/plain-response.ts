/**
 * The answer to a request that was read here: what Node's own would write, with less on the way. Its head
 * leaves together with the first piece of its body.
 */
import { EventEmitter } from 'node:events'
import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientResponse } from './client.js'
import { headerLine, trustedLine } from './header-line.js'
import { latin1 } from './latin1.js'

/** Up to this, pieces are joined to one text: one write costs less than some. Larger ones are not copied. */
const MOST_JOINED_BYTES = 16_384
const LAST_CHUNK = '0\r\n\r\n'
// As Node writes them.
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const CLOSE = 'Connection: close\r\n'

/** `plain`: a body as it is. `chunked`: in pieces that say how long they are. `none`: there must not be one. */
type Framing = 'plain' | 'chunked' | 'none'

export interface ResponseOwner {
  /** Header lines that say that the connection stays, and for how long. */
  readonly keepAlive: string
  /** All of it has left. */
  onAnswered(keepsAlive: boolean): void
}

export class PlainResponse extends EventEmitter implements ClientResponse {
  statusCode = 200
  headersSent = false
  writableEnded = false
  writableFinished = false
  shouldKeepAlive = true
  #socket: Socket | null
  readonly #owner: ResponseOwner
  #framing: Framing = 'chunked'
  /** Not written yet. */
  #head = ''
  #needsDrain = false
  readonly #onLeft = (error?: Error | null) => {
    // Otherwise the connection is closed next.
    if (!error) this.#finish()
  }

  constructor(socket: Socket, owner: ResponseOwner) {
    super()
    this.#socket = socket
    this.#owner = owner
  }

  get socket(): Socket | null {
    return this.#socket
  }

  get destroyed(): boolean {
    return this.#socket === null || this.#socket.destroyed
  }

  /** Names in small letters. */
  writeHead(status: number, headers: OutgoingHttpHeaders | string[]): this {
    const lines = Array.isArray(headers) ? headers : inTurn(headers)
    return this.passHead(status, lines, lines.length)
  }

  /** Names in small letters and values in turn. From `trustedFrom` on they are as a `FieldReader` has read them. */
  passHead(status: number, lines: readonly string[], trustedFrom: number): this {
    if (this.headersSent) throw new Error('the head has been written')
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
    let saysDate = false
    let saysLength = false
    let saysConnection = false
    for (let i = 0; i < lines.length; i += 2) {
      const name = lines[i] as string
      const value = lines[i + 1] as string
      head += i < trustedFrom ? headerLine(name, value) : trustedLine(name, value)
      if (name === 'date') saysDate = true
      else if (name === 'content-length') saysLength = true
      else if (name === 'connection') {
        saysConnection = true
        if (value === 'close') this.shouldKeepAlive = false
      }
    }
    if (!saysDate) head += dateLine()
    if (!saysConnection) head += this.shouldKeepAlive ? this.#owner.keepAlive : CLOSE
    if (status === 204 || status === 304) this.#framing = 'none'
    else if (saysLength) this.#framing = 'plain'
    else head += CHUNKED
    this.#head = `${head}\r\n`
    this.statusCode = status
    this.headersSent = true
    return this
  }

  write(piece: Buffer | string): boolean {
    if (this.#isShut) return false
    const body = bodyOf(piece, 'utf8')
    if (body === undefined || this.#send(body, '')) return true
    this.#needsDrain = true
    return false
  }

  end(piece?: Buffer | string, encoding: BufferEncoding = 'utf8'): this {
    const shut = this.#isShut
    this.writableEnded = true
    if (shut) return this
    const tail = this.#framing === 'chunked' ? LAST_CHUNK : ''
    this.#send(bodyOf(piece, encoding), tail, this.#onLeft)
    return this
  }

  destroy(): this {
    this.#socket?.destroy()
    return this
  }

  // What its connection says.

  drained(): void {
    if (!this.#needsDrain) return
    this.#needsDrain = false
    this.emit('drain')
  }

  /** The connection is gone. */
  closed(): void {
    this.#socket = null
    this.emit('close')
  }

  /** Nothing can be written any more: it is over, or its connection is about to be. */
  get #isShut(): boolean {
    return this.writableEnded || this.#socket?.writable !== true
  }

  #finish(): void {
    if (this.destroyed) return
    this.writableFinished = true
    this.emit('finish')
    this.closed()
    this.#owner.onAnswered(this.shouldKeepAlive)
  }

  /** `body`: a text has a character for each byte. */
  #send(body: Buffer | string | undefined, tail: string, onLeft?: () => void): boolean {
    const socket = this.#socket as Socket
    let before = this.#head
    let after = tail
    this.#head = ''
    if (body === undefined || this.#framing === 'none') {
      return socket.write(before + after, 'latin1', onLeft)
    }
    if (this.#framing === 'chunked') {
      before += `${body.length.toString(16)}\r\n`
      after = `\r\n${after}`
    }
    if (typeof body === 'string') return socket.write(before + body + after, 'latin1', onLeft)
    socket.cork()
    socket.write(before, 'latin1')
    socket.write(body)
    const hasRoom = socket.write(after, 'latin1', onLeft)
    socket.uncork()
    return hasRoom
  }
}

/** Small ones as text, with a character for each byte. Nothing, if it is empty. */
function bodyOf(
  piece: Buffer | string | undefined,
  encoding: BufferEncoding,
): Buffer | string | undefined {
  if (piece === undefined || piece.length === 0) return undefined
  if (typeof piece === 'string' && encoding === 'latin1') return piece
  const bytes = typeof piece === 'string' ? Buffer.from(piece, encoding) : piece
  return bytes.length <= MOST_JOINED_BYTES ? latin1(bytes) : bytes
}

function inTurn(headers: OutgoingHttpHeaders): string[] {
  const lines: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (Array.isArray(value)) for (const each of value) lines.push(name, each)
    else if (value !== undefined) lines.push(name, String(value))
  }
  return lines
}

let dateSecond = 0
let date = ''

/** Made once a second. */
function dateLine(): string {
  const second = Math.floor(Date.now() / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    date = `Date: ${new Date(second * 1_000).toUTCString()}\r\n`
  }
  return date
}
