/** A client's request and the answer to it, as the gateway sees them, whoever reads and writes them. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** Node's, or one that was plain enough to be read here. */
export interface ClientRequest {
  /** It was read here: each character of its head has been looked at. */
  readonly isPlain?: true
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn. */
  readonly rawHeaders: string[]
  readonly socket: Socket
  /** All of its body has come. */
  readonly complete: boolean
  /** Nobody wants the rest of its body. */
  resume(): unknown
}

export interface ClientResponse {
  readonly statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  readonly destroyed: boolean
  /** Nothing, once it is over. */
  readonly socket: Socket | null
  shouldKeepAlive: boolean
  /** `headers`: an object, or names and values in turn. */
  writeHead(status: number, headers: OutgoingHttpHeaders | string[]): unknown
  /** The same with names and values in turn, of which those from `trustedFrom` on were read here. */
  passHead?(status: number, headers: readonly string[], trustedFrom: number): unknown
  write(piece: Buffer | string): boolean
  end(piece?: Buffer | string, encoding?: BufferEncoding): unknown
  destroy(): unknown
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown
}
