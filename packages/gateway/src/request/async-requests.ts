/**
 * Async requests (`Prefer: respond-async`), as the data port uses them. The implementation is in `jobs/`.
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
  /** Whether this is the path of a job, not of a vendor. */
  owns(path: string): boolean
  /** Answers a request on such a path. Undefined if it writes the response itself. */
  attend(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    known: (caller: Caller) => void,
  ): Promise<GatewayAnswer | undefined>
  /** Queues a request that may wait. Undefined if the request has to be answered now. */
  defer(
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target | undefined,
  ): Promise<GatewayAnswer> | undefined
}
