/** Reads one answer from the bytes of a connection, and says when it is over. */
import { type AnswerHead, CHUNKED, readHead, UNTIL_CLOSE } from './answer-head.js'
import { ChunkedBody } from './chunked-body.js'
import { latin1 } from './latin1.js'
import { malformed } from './wire-error.js'

export interface AnswerListener {
  onHead(status: number, headers: string[]): void
  onBody(piece: Buffer): void
}

/** As much as Node's own parser takes. */
const MOST_HEAD_BYTES = 16_384
const HEAD_END = Buffer.from('\r\n\r\n')
const CR = 0x0d
const LF = 0x0a
const SWITCHING = 101
const FIRST_FINAL = 200

export class AnswerReader {
  readonly #listener: AnswerListener
  readonly #bodiless: boolean
  #head: AnswerHead | undefined
  /** The beginning of a head whose end has not come. */
  #rest: Buffer | undefined
  #left = 0
  #chunks: ChunkedBody | undefined
  #over = false
  /** Something came behind its end. */
  #spilled = false

  /** `bodiless`: the answer to a HEAD. */
  constructor(listener: AnswerListener, bodiless: boolean) {
    this.#listener = listener
    this.#bodiless = bodiless
  }

  /** All of it has come. */
  get over(): boolean {
    return this.#over
  }

  /** How long the connection may rest before it is used again; 0: it must not be. */
  get keepAliveMs(): number {
    return this.#spilled ? 0 : (this.#head?.keepAliveMs ?? 0)
  }

  /**
   * The bytes are not kept. Fails if they are no answer. Bytes behind its end are an error as well, but
   * for a line break: nobody has asked for them.
   */
  push(bytes: Buffer): void {
    const body = this.#head === undefined ? this.#takeHead(bytes) : bytes
    if (body !== undefined) this.#takeBody(body)
  }

  /** The other side has closed. False: something is missing. */
  close(): boolean {
    if (this.#head?.length === UNTIL_CLOSE) this.#over = true
    return this.#over
  }

  /** Answers with what follows the head, if all of that has come. */
  #takeHead(bytes: Buffer): Buffer | undefined {
    let all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    this.#rest = undefined
    for (;;) {
      const end = all.indexOf(HEAD_END)
      if ((end === -1 ? all.length : end) > MOST_HEAD_BYTES) throw malformed('has too long a head')
      if (end === -1) {
        this.#rest = Buffer.from(all)
        return undefined
      }
      const head = readHead(latin1(all, 0, end), this.#bodiless)
      all = all.subarray(end + HEAD_END.length)
      // What is said in between, before the answer itself, is for nobody here.
      if (head.status < FIRST_FINAL) {
        if (head.status === SWITCHING) throw malformed('changes the protocol, unasked')
        continue
      }
      this.#begin(head)
      return all
    }
  }

  #begin(head: AnswerHead): void {
    this.#head = head
    this.#left = head.length
    if (head.length === CHUNKED) this.#chunks = new ChunkedBody()
    this.#listener.onHead(head.status, head.headers)
  }

  #takeBody(bytes: Buffer): void {
    if (this.#chunks !== undefined) return this.#takeChunks(this.#chunks, bytes)
    if (this.#left === UNTIL_CLOSE) {
      if (bytes.length > 0) this.#listener.onBody(bytes)
      return
    }
    const own = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    this.#checkRest(bytes, own.length)
    this.#left -= own.length
    this.#over = this.#left === 0
    if (own.length > 0) this.#listener.onBody(own)
  }

  #takeChunks(chunks: ChunkedBody, bytes: Buffer): void {
    const taken = chunks.push(bytes, (piece) => this.#listener.onBody(piece))
    this.#over = chunks.over
    this.#checkRest(bytes, taken)
  }

  /** A line break too many is common, and the end of the connection; anything else is an error. */
  #checkRest(bytes: Buffer, from: number): void {
    // Not passed on. Its connection is not used again.
    if (bytes.length - from <= (this.#head?.unwantedBytes ?? 0)) {
      this.#spilled ||= bytes.length > from
      return
    }
    for (let at = from; at < bytes.length; at++) {
      if (bytes[at] !== CR && bytes[at] !== LF) throw malformed('is longer than it says')
      this.#spilled = true
    }
  }
}
