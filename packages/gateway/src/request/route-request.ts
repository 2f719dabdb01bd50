/**
 * The first half of a request: checks its head, identifies its caller, reads its body as far as necessary and chooses its
 * route. Throws or rejects with a `RequestError` if the request is refused.
 */
import type { RouteConfig } from '../config/config.js'
import { PROTOCOLS } from '../protocols/index.js'
import type { Protocol, RequestAddress } from '../protocols/protocol.js'
import { RequestError } from '../response/errors.js'
import { containsKey, maskedName, shownPath } from '../response/privacy.js'
import type { ConfigVersion } from '../routing/config-version.js'
import { ambiguous, notFound, protocolOf } from '../routing/no-route.js'
import type { RouteQuery } from '../routing/routes.js'
import type { Caller } from './callers.js'
import type { ClientRequest } from './client-http.js'
import { parseRequest } from './parse-request.js'
import { canBeSentTo, type RoutedRequest, routedRequest } from './routed-request.js'
import { faultInLlmPath } from './validation/request-url.js'

/** Receives the facts about a request as they are found, also if it is refused afterwards. */
export interface RoutingListener {
  /** Errors have the format of this protocol from now on. */
  onProtocol(protocol: Protocol): void
  onCaller(caller: Caller): void
  onRoute(route: RouteConfig): void
  /** The caller's key is valid, and the body is read next. */
  onReading(): void
  /** Called with the size of each chunk of the body that arrives. */
  onReceived(bytes: number): void
  /** Called with the size of each chunk before it is held in memory. May throw. */
  onHeld(bytes: number): void
  /** Called when the client's side of a streamed body fails. */
  onBodyFault(error: unknown): void
}

/** `path`: of the request, in its canonical form. */
export function routeRequest(
  request: ClientRequest,
  { path, query: written }: RequestAddress,
  version: ConfigVersion,
  listener: RoutingListener,
): Promise<RoutedRequest> {
  const { routes, callers, config } = version
  const { headers } = request
  const query: RouteQuery = {
    method: request.method ?? 'GET',
    path,
    fromAnthropicClient: headers['anthropic-version'] !== undefined,
  }
  const { kind, rows } = routes.find(query)
  const [first] = rows
  if (first === undefined) throw noRoute(request, query, written, version, listener)
  const protocol = version.protocolOf(first.route)
  listener.onProtocol(protocol)
  const key = protocol.callerKey(headers, written)
  const caller = callers.find(key, request)
  if (caller === undefined) throw unauthorized()
  listener.onCaller(caller)
  const pathFault = protocol.name === 'http' ? undefined : faultInLlmPath(path)
  if (pathFault !== undefined) throw new RequestError(pathFault)
  if (kind === 'ambiguous') {
    throw ambiguous({ query, shownPath: shownPath(path, headers), routes: config.routes })
  }
  const parsing = parseRequest(request, {
    protocol,
    path,
    query: written,
    contentDecides: version.contentDecides(rows),
    limits: config.body,
    onReading: () => listener.onReading(),
    onReceived: (bytes) => listener.onReceived(bytes),
    onHeld: (bytes) => listener.onHeld(bytes),
    onFault: (error) => listener.onBodyFault(error),
  })
  return parsing.then((parsed) => {
    const { model } = parsed.facts
    if (containsKey(path, key) || containsKey(model, key)) throw misplacedKey()
    const route = routes.forModel(rows, model)
    if (route === undefined) throw noModel(model)
    listener.onRoute(route)
    const routed = routedRequest(request, protocol, {
      route,
      caller,
      callerKey: key,
      path,
      query: protocol.queryWithoutKeys?.(written) ?? written,
      parsed,
    })
    if (!version.targetsOf(route).some((each) => canBeSentTo(routed, each))) {
      throw cannotReplaceModel()
    }
    return routed
  })
}

function noRoute(
  request: ClientRequest,
  query: RouteQuery,
  written: string,
  { callers, config }: ConfigVersion,
  listener: RoutingListener,
): RequestError {
  const { path } = query
  // Another spelling of a path that has a route is refused as it would be on that route.
  const fault = LLM_PATH.test(path) ? faultInLlmPath(path) : undefined
  if (fault !== undefined) return new RequestError(fault)
  const { headers } = request
  listener.onProtocol(PROTOCOLS[protocolOf(query)])
  const isKnownCaller = Object.values(PROTOCOLS).some(
    ({ callerKey }) => callers.find(callerKey(headers, written), request) !== undefined,
  )
  return notFound({
    query,
    shownPath: shownPath(path, headers),
    routes: config.routes,
    isKnownCaller,
  })
}

const LLM_PATH = /^\/(v1|openai\/)/

function misplacedKey(): RequestError {
  const message =
    'the API key is in the path or in the model, where logs would show it; send it in a header'
  return new RequestError({ status: 400, code: 'MISPLACED_KEY', message })
}

function cannotReplaceModel(): RequestError {
  const message = 'this route replaces the model, which is only possible in a JSON body or a path'
  return new RequestError({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', message })
}

function noModel(model: string | undefined): RequestError {
  const what = model === undefined ? 'a request without a model' : `the model ${maskedName(model)}`
  const message = `no route takes ${what}; check the model, or add it to models of a route`
  return new RequestError({ status: 404, code: 'NO_ROUTE', message })
}

function unauthorized(): RequestError {
  const message =
    'the API key is missing or unknown; send a key of the gateway, not of the vendor, where the SDK of the vendor sends its key'
  return new RequestError({ status: 401, code: 'UNKNOWN_KEY', message })
}
