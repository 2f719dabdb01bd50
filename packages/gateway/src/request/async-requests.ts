/**
 * Requests whose answer may come later, as the data port sees them. What they are, and who does them, is
 * in `jobs/`.
 */

import type { Target } from '../routing/target.js'
import type { Caller } from './callers.js'
import type { ClientRequest, ClientResponse } from './client-http.js'
import type { RoutedRequest } from './routed-request.js'

/** An answer of the gateway's own. */
export interface GatewayAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

export interface AsyncRequests {
  /** Whether a path is that of something deferred, and for no vendor. */
  owns(path: string): boolean
  /** Answers a request on such a path; nothing: it has taken the response over. */
  attend(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    known: (caller: Caller) => void,
  ): Promise<GatewayAnswer | undefined>
  /** Takes a request that may wait; nothing: it is answered now. */
  defer(
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target | undefined,
  ): Promise<GatewayAnswer> | undefined
}
