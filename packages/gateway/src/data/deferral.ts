/**
 * Requests whose answer may come later, as the data port sees them. What they are, and who does them, is
 * in `jobs/`.
 */
import type { ClientRequest, ClientResponse } from '../request/client-http.js'
import type { Aim } from './aim.js'
import type { Caller } from './callers.js'
import type { Question } from './question.js'

/** An answer of the gateway's own. */
export interface Said {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

export interface Deferral {
  /** Whether a path is that of something deferred, and for no vendor. */
  owns(path: string): boolean
  /** Answers a request on such a path; nothing: it has taken the response over. */
  attend(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    known: (caller: Caller) => void,
  ): Promise<Said | undefined>
  /** Takes a request that may wait; nothing: it is answered now. */
  defer(request: ClientRequest, question: Question, aim: Aim | undefined): Promise<Said> | undefined
}
