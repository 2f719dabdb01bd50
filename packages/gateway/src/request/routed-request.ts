/** A request after its body has been read. */
import type { RouteConfig } from '../config/config.js'
import type { Protocol, RequestFacts } from '../protocols/protocol.js'
import { uniqueId } from '../response/privacy.js'
import type { Target } from '../routing/target.js'
import type { Caller } from './callers.js'
import type { ClientRequest } from './client-http.js'
import type { ParsedRequest } from './parse-request.js'

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

export interface RoutedRequest {
  readonly route: RouteConfig
  readonly caller: Caller
  readonly path: string
  /** Without keys. */
  readonly query: string
  /** The key that the client presented, if any. */
  readonly callerKey: string | undefined
  /** The path names the model, so that another target's model is written there. */
  readonly modelInPath: boolean
  readonly parsed: ParsedRequest
  readonly facts: RequestFacts
  /** Whether the vendor charges tokens for it. */
  readonly generates: boolean
  /** Sending it twice only costs twice. */
  readonly harmless: boolean
  /** Set by the gateway if the client sent none and the vendor might receive the request twice. */
  readonly idempotencyKey: string | undefined
}

export function routedRequest(
  { method = 'GET', headers }: ClientRequest,
  protocol: Protocol,
  known: Pick<RoutedRequest, 'route' | 'caller' | 'callerKey' | 'path' | 'query' | 'parsed'>,
): RoutedRequest {
  const keyed = headers['idempotency-key'] !== undefined
  const safe = IDEMPOTENT.has(method)
  const repeatable = !safe && !keyed && protocol.repeatable(known.path)
  const { route, caller, callerKey, path, query, parsed } = known
  return {
    route,
    caller,
    callerKey,
    path,
    query,
    modelInPath: protocol.format?.modelIn(path) !== undefined,
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

/** Whether it can be sent again: its body is still in memory, and sending it twice only costs twice. */
export function canBeRepeated({ parsed: { body }, harmless }: RoutedRequest): boolean {
  return body.kind === 'held' && harmless
}

/** A target that replaces the model takes only requests whose model can be replaced. */
export function canBeSentTo({ parsed, modelInPath }: RoutedRequest, { config }: Target): boolean {
  return modelInPath || !(parsed.isUnread && config.model !== undefined)
}
