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

/** Reports about a request on the path of a job, for its record. */
export interface JobRequestListener {
  /** The key of the request is valid. */
  onCaller(caller: Caller): void
  /** The gateway ends the response early, because it shuts down. */
  onShutdown(): void
}

export interface AsyncRequests {
  /** Whether this is the path of a job, not of a vendor. */
  owns(path: string): boolean
  /** Answers a request on such a path. Undefined if it writes the response itself. */
  answer(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    listener: JobRequestListener,
  ): Promise<GatewayAnswer | undefined>
  /** Queues a request that may wait. Undefined if the request has to be answered now. */
  defer(
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target | undefined,
  ): Promise<GatewayAnswer> | undefined
}
