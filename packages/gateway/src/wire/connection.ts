/**
 * One connection to a vendor, for one request after the other. It is the short way between two sockets:
 * a request is one write, and what comes back is read where it arrives, without a stream in between.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectSafely } from 'node:tls'
import { AnswerReader } from './answer-reader.js'
import type { Asking, WireHandler } from './ask.js'
import { type Leaving, leaveByEndOfTurn } from './end-of-turn.js'
import type { RequestBytes } from './request-bytes.js'
import { malformed, noteSent, WireError } from './wire-error.js'

export interface Destination {
  readonly secure: boolean
  readonly hostname: string
  readonly port: number
  /** As a header says it. */
  readonly host: string
  readonly connectMs: number
  /** Of TLS: the next connection need not begin from nothing. */
  session?: Buffer | undefined
}

export interface ConnectionOwner {
  /** It died before anything of this left: nobody has seen it, and another connection may carry it. */
  onUnsent(call: Call): void
  /** It may rest for so long, and then be used again. */
  onIdle(connection: Connection, keepAliveMs: number): void
  onClosed(connection: Connection): void
}

/** So often the other side is asked whether it is still there, in the middle of long silences. */
const PROBE_MS = 60_000

export class Connection implements Leaving {
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  #call: Call | undefined
  #connecting: NodeJS.Timeout | undefined
  /** What it carries leaves by the end of this turn. */
  #leaving = false
  /** It has carried a request before. */
  #used = false
  /** Until when it may rest. The pool's. */
  restsUntilMs = 0

  constructor(destination: Destination, owner: ConnectionOwner) {
    this.#owner = owner
    const { connectMs } = destination
    const socket = open(destination, (bytes) => this.#heard(bytes))
    this.#socket = socket
    this.#connecting = setTimeout(() => {
      socket.destroy(new WireError('CONNECT_TIMEOUT', `no connection within ${connectMs} ms`))
    }, connectMs)
    socket.once(destination.secure ? 'secureConnect' : 'connect', () => this.#connected())
    socket.on('end', () => this.#closed())
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => {
      this.#stopConnecting()
      this.#closed()
      owner.onClosed(this)
    })
    if (destination.secure) {
      socket.on('session', (session: Buffer) => {
        destination.session = session
      })
    }
  }

  /** Nothing has happened to it that it does not know how to live with. */
  get usable(): boolean {
    return !this.#socket.destroyed
  }

  /** Only while it rests, or is new. */
  carry(call: Call): void {
    this.#call = call
    call.connection = this
    if (this.#connecting === undefined) this.#send()
  }

  /** The call that has it, if any, is told. */
  destroy(error?: Error): void {
    if (error !== undefined) this.#fail(error)
    else this.#socket.destroy()
  }

  /** For its calls. */

  pause(): void {
    this.#socket.pause()
  }

  resume(call: Call): void {
    if (this.#call === call) this.#socket.resume()
  }

  abort(call: Call): void {
    if (this.#call !== call) return
    this.#call = undefined
    this.#socket.destroy()
  }

  /** It stands, and with TLS it is known who is there: nothing is said before. */
  #connected(): void {
    this.#stopConnecting()
    // With TLS nobody heeds these when they are asked for with the connection.
    this.#socket.setNoDelay(true).setKeepAlive(true, PROBE_MS)
    if (this.#call !== undefined) this.#send()
  }

  #stopConnecting(): void {
    clearTimeout(this.#connecting)
    this.#connecting = undefined
  }

  #send(): void {
    this.#leaving = true
    leaveByEndOfTurn(this)
  }

  /** The end of the turn has come, or others leave as well. */
  leave(): void {
    const call = this.#call
    const socket = this.#socket
    // Nobody wants it any more, or it has been told that it cannot leave.
    if (call === undefined || socket.destroyed) return
    this.#leaving = false
    const [first, second] = call.request
    if (second === undefined) return void socket.write(first)
    socket.cork()
    socket.write(first)
    socket.write(second)
    socket.uncork()
  }

  /** Of what it carries now. */
  get #hasSentNothing(): boolean {
    return this.#connecting !== undefined || this.#leaving
  }

  #heard(bytes: Buffer): void {
    const call = this.#call
    // Nobody has asked for anything.
    if (call === undefined) return void this.#socket.destroy()
    // It cannot be the answer to what has not left.
    if (this.#hasSentNothing) return this.#fail(malformed('came before its request'))
    try {
      call.reader.push(bytes)
    } catch (error) {
      return this.#fail(error instanceof Error ? error : malformed('cannot be read'))
    }
    if (call.reader.over) this.#finish(call)
  }

  #finish(call: Call): void {
    // Aborted by whoever got its last piece.
    if (this.#call !== call) return
    this.#call = undefined
    const { keepAliveMs } = call.reader
    const socket = this.#socket
    // Before all of the request has left, nothing else can follow it.
    if (keepAliveMs > 0 && socket.writableLength === 0 && !socket.destroyed) {
      if (socket.isPaused()) socket.resume()
      this.#owner.onIdle(this, keepAliveMs)
    } else socket.destroy()
    this.#used = true
    try {
      call.handler.onComplete()
    } catch (error) {
      call.handler.onError(error as Error)
    }
  }

  /** The other side says nothing more. */
  #closed(): void {
    const call = this.#call
    if (call === undefined) return void this.#socket.destroy()
    if (call.reader.close()) return this.#finish(call)
    this.#fail(new WireError('CONNECTION_CLOSED', 'the vendor closed the connection'))
  }

  #fail(error: Error): void {
    const call = this.#call
    const sent = !this.#hasSentNothing
    this.#call = undefined
    this.#socket.destroy()
    if (call === undefined) return
    if (!sent && this.#used) return this.#owner.onUnsent(call)
    noteSent(error, sent)
    call.handler.onError(error)
  }
}

/** One request, and its answer. */
export class Call implements Asking {
  readonly request: RequestBytes
  readonly handler: WireHandler
  readonly reader: AnswerReader
  connection: Connection | undefined
  #aborted = false

  /** `bodiless`: whatever its answer says, it has no body. */
  constructor(request: RequestBytes, handler: WireHandler, bodiless: boolean) {
    this.request = request
    this.handler = handler
    this.reader = new AnswerReader(this, bodiless)
  }

  onHead(status: number, headers: string[]): void {
    if (!this.#aborted) this.handler.onHead(status, headers)
  }

  /** What was read together may go on after somebody had enough. */
  onBody(piece: Buffer): void {
    if (this.#aborted) return
    if (!this.handler.onData(Buffer.from(piece))) this.connection?.pause()
  }

  abort(): void {
    this.#aborted = true
    this.connection?.abort(this)
  }

  resume(): void {
    this.connection?.resume(this)
  }
}

/**
 * Where all sockets read into, one after the other: nobody keeps what is read without a copy. A buffer for
 * each read, and a stream that hands it on, would cost more than all that is done with it here.
 */
const READ_BUFFER = Buffer.allocUnsafe(65_536)

function open(
  { secure, hostname, port, session }: Destination,
  onRead: (bytes: Buffer) => void,
): Socket {
  const where = {
    host: hostname,
    port,
    onread: {
      buffer: READ_BUFFER,
      callback: (length: number) => {
        onRead(READ_BUFFER.subarray(0, length))
        return true
      },
    },
  }
  if (!secure) return connectPlain(where)
  return connectSafely({
    ...where,
    // An address is no name of a server.
    servername: isIP(hostname) === 0 ? hostname : '',
    ALPNProtocols: ['http/1.1'],
    session,
  } as ConnectionOptions)
}
