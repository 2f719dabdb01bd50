/** What is known of a request once its body has been read. */
import type { RouteConfig } from '../config/config.js'
import type { Protocol, RequestFacts } from '../protocols/protocol.js'
import type { ClientRequest } from '../request/client-http.js'
import type { ParsedRequest } from '../request/parse-request.js'
import type { Aim } from './aim.js'
import type { Caller } from './callers.js'
import { uniqueId } from './request-id.js'

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

export interface Question {
  readonly route: RouteConfig
  readonly caller: Caller
  readonly path: string
  readonly parsed: ParsedRequest
  readonly facts: RequestFacts
  /** Whether the vendor charges tokens for it. */
  readonly generates: boolean
  /** Sending it twice has no other effect than to cost twice. */
  readonly harmless: boolean
  /** Set by the gateway if the client sent none and the vendor might receive the request twice. */
  readonly idempotencyKey: string | undefined
}

export function questionOf(
  { method = 'GET', headers }: ClientRequest,
  protocol: Protocol,
  known: Pick<Question, 'route' | 'caller' | 'path' | 'parsed'>,
): Question {
  const keyed = headers['idempotency-key'] !== undefined
  const safe = IDEMPOTENT.has(method)
  const repeatable = !safe && !keyed && protocol.repeatable(known.path)
  const { route, caller, path, parsed } = known
  return {
    route,
    caller,
    path,
    parsed,
    facts: parsed.facts,
    generates: generates(parsed, protocol, path),
    harmless: safe || keyed || repeatable,
    idempotencyKey: repeatable ? uniqueId() : undefined,
  }
}

function generates({ json, isUnread }: ParsedRequest, { format }: Protocol, path: string): boolean {
  if (format === undefined || format.isFree(path)) return false
  const kind = format.bodyOn(path)
  return kind !== 'file' && (json !== undefined || (isUnread && kind === 'form'))
}

/** The body is still at hand, and sending it once more has no other effect than to cost twice. */
export function mayBeSentAgain({ parsed: { body }, harmless }: Question): boolean {
  return body.kind === 'held' && harmless
}

/** A target that replaces the model takes only bodies whose model is known. */
export function canBeSentTo({ parsed }: Question, { target }: Aim): boolean {
  return !(parsed.isUnread && target.model !== undefined)
}
