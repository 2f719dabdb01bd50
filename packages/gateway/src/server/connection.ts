/** Interface of a client's connection for the data server, for HTTP/1.1 and HTTP/2. */
import type { ClientRequest } from '../request/client-http.js'
import type { Exchange } from '../request/exchange.js'

export interface Connection {
  /** Requests that are open. */
  readonly exchanges: Set<Exchange>
  /** The head of a request has arrived. */
  noteStart(request: Pick<ClientRequest, 'complete'>): void
  /** A request has ended. */
  noteEnd(nowMs: number): void
  /** No request is open or arriving, and every answer was sent. */
  readonly isIdle: boolean
  /** Its last answer was sent, and the rest of the request is received so that the client can read the answer. */
  readonly isLingering: boolean
  /** Called about once a second. Anything but undefined ends the connection. */
  check(nowMs: number): ConnectionProblem | undefined
  /** Accepts no more requests. */
  drain(): void
  destroy(): void
}

export type ConnectionProblem = 'slow headers' | 'unread' | 'idle'
