/** A request that was plain enough to be read here, and its body, which is kept whole. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientRequest } from './client.js'
import { addPiece, wholeOf } from './pieces.js'
import type { PlainHead } from './plain-head.js'

interface BodyReader {
  resolve(bytes: Buffer): void
  reject(error: Error): void
}

export class PlainRequest implements ClientRequest {
  readonly isPlain = true
  readonly httpVersionMajor = 1
  readonly httpVersionMinor = 1
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[]
  readonly socket: Socket
  #pieces: Buffer[] = []
  #left: number
  #unwanted = false
  #reader: BodyReader | undefined

  constructor({ method, url, headers, rawHeaders, bodyBytes }: PlainHead, socket: Socket) {
    this.method = method
    this.url = url
    this.headers = headers
    this.rawHeaders = rawHeaders
    this.socket = socket
    this.#left = bodyBytes
  }

  get complete(): boolean {
    return this.#left === 0
  }

  /** Whoever still waits for it hears when the connection is gone. */
  resume(): void {
    this.#unwanted = true
    this.#pieces = []
  }

  /** All of it, if it has come. */
  get body(): Buffer | undefined {
    return this.#left > 0 ? undefined : wholeOf(this.#pieces)
  }

  /** All of it, when it has come; fails if it never will. */
  readBody(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
      if (this.socket.destroyed) this.cut()
    })
  }

  // What its connection says.

  /** Answers with what follows it, if anything does. */
  take(bytes: Buffer): Buffer | undefined {
    const own = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    this.#left -= own.length
    if (own.length > 0 && !this.#unwanted) addPiece(this.#pieces, own)
    if (this.#left === 0 && !this.#unwanted && this.#reader !== undefined) this.#tell(this.#reader)
    return own.length === bytes.length ? undefined : bytes.subarray(own.length)
  }

  /** Once: whatever comes behind it is not part of it. */
  #tell({ resolve }: BodyReader): void {
    this.#reader = undefined
    const whole = wholeOf(this.#pieces)
    this.#pieces = [whole]
    resolve(whole)
  }

  /** Nothing more of it will come. */
  cut(): void {
    this.#reader?.reject(new Error('the connection is gone'))
  }
}
