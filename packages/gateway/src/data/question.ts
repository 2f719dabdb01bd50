/** What is known of a request once its body has been read. */
import type { RouteConfig } from '../config/config.js'
import type { Asked, Protocol } from '../protocols/protocol.js'
import type { ClientRequest } from '../wire/client.js'
import type { Caller } from './callers.js'
import type { RequestBody } from './request-body.js'
import { uniqueId } from './request-id.js'

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

export interface Question {
  readonly route: RouteConfig
  readonly caller: Caller
  readonly path: string
  readonly body: RequestBody
  readonly asked: Asked
  /** The whole body, if it is an object. */
  readonly json: Record<string, unknown> | undefined
  /** Doing it twice does no harm. */
  readonly harmless: boolean
  /** Ours, if the client has none and the vendor might see the request twice. */
  readonly idempotencyKey: string | undefined
}

export function questionOf(
  { method = 'GET', headers }: ClientRequest,
  protocol: Protocol,
  known: Pick<Question, 'route' | 'caller' | 'path' | 'body' | 'asked' | 'json'>,
): Question {
  const keyed = headers['idempotency-key'] !== undefined
  const safe = IDEMPOTENT.has(method)
  const repeatable = !safe && !keyed && protocol.repeatable(known.path)
  const { route, caller, path, body, asked, json } = known
  return {
    route,
    caller,
    path,
    body,
    asked,
    json,
    harmless: safe || keyed || repeatable,
    idempotencyKey: repeatable ? uniqueId() : undefined,
  }
}

/** It can still be sent, and once more does no harm. */
export function mayBeSentAgain({ body, harmless }: Question): boolean {
  return body.kind === 'whole' && harmless
}
