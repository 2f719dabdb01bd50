/** One request to one target, through the guard of its vendor, which decides whether, when and how often it is sent. */
import type { CallContext, Clock, RunOptions } from 'spillway'
import { clientNetwork } from 'spillway/http'
import { type KeyId, REPLACES, type ReplacedCall, type UserStanding } from 'spillway/internal'
import type { RouteConfig } from '../config/config.js'
import type { ConfigVersion } from '../routing/config-version.js'
import type { Target } from '../routing/target.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import { vendorRequest } from '../vendor/vendor-request.js'
import type { ResponseListener, VendorResponse } from '../vendor/vendor-response.js'
import type { ClientRequest } from './client-http.js'
import {
  type ClientSignal,
  callerAttempt,
  deadlineMs,
  HOP_NEEDS_MS,
  hopHeaders,
} from './deadline.js'
import { canBeRepeated, type RoutedRequest } from './routed-request.js'
import { type RequestTrace, withTrace } from './trace.js'

/** Facts about a request before it is routed. */
export interface SenderOptions {
  readonly version: ConfigVersion
  /** Id of the request, by which its decisions are found. */
  readonly id: string
  readonly request: ClientRequest
  readonly trace: RequestTrace | undefined
  readonly clock: Pick<Clock, 'now' | 'schedule'>
  readonly arrivedMs: number
  /** Aborted when the client disconnects. */
  readonly signal: ClientSignal
}

/** Where and how a routed request is sent. */
export interface GuardedRequest {
  readonly routed: RoutedRequest
  readonly target: Target
  /** The configured key that is sent with it, if its vendor has any. */
  readonly key: KeyId | undefined
  readonly lane: string | undefined
  /** The gateway requests the usage of a stream, which the client did not request. */
  readonly requestsUsage: boolean
  /** Its user limits were charged at an earlier target. */
  readonly isCharged: boolean
  /** The call at another target that this one replaces. */
  readonly replaced: ReplacedCall | undefined
}

export interface GuardListener extends ResponseListener {
  /** An attempt is sent now. */
  onAttempt(): void
  onStanding(standing: UserStanding): void
  /** A stage in shadow would have refused it. */
  onShadow(stage: string): void
}

/** Resolves with the answer that the guard accepts or does not retry, once status and headers have arrived. */
export function sendThroughGuard(
  options: SenderOptions,
  { routed, target, key, lane, requestsUsage, isCharged, replaced }: GuardedRequest,
  listener: GuardListener,
): Promise<VendorResponse> {
  const { request: incoming, signal, trace } = options
  const { vendor, config } = target
  const { facts, caller, generates } = routed
  const { body } = routed.parsed
  const model = config.model ?? facts.model
  const request = vendorRequest(incoming, routed, target, requestsUsage)
  const cost = generates ? vendor.costOf(facts, model, lane) : undefined
  if (body.kind === 'streamed' && !body.progress.complete) signal.cause = 'upload'
  const theirAttempt = callerAttempt(incoming)
  // One object literal: adding the functions later would keep the call from being collected early.
  const runOptions: RunOptions & { [REPLACES]: ReplacedCall | undefined } = {
    requestId: options.id,
    [REPLACES]: replaced,
    priority: caller.priority,
    idempotent: canBeRepeated(routed),
    callerAttempt: theirAttempt,
    signal,
    lane,
    cost,
    timeoutMs: timeLeftMs(options, routed.route),
    needsMs: vendor.hops ? HOP_NEEDS_MS : undefined,
    user: isCharged ? undefined : caller.user,
    tier: isCharged ? undefined : caller.tier,
    ip: isCharged ? undefined : clientNetwork(incoming.socket.remoteAddress ?? ''),
    endpoint: isCharged ? undefined : routed.path,
    onUserLimit: (standing) => listener.onStanding(standing),
    costOfUsage: cost && ((usage) => vendor.countedFor(facts, model, usage)),
    traceParent: trace?.context,
    onShadow: vendor.shadows ? ({ stage }) => listener.onShadow(stage) : undefined,
  }
  return vendor.guard.run((context: CallContext) => {
    const send = (onAnswer?: (answer: VendorResponse | undefined) => void) => {
      listener.onAttempt()
      const traced = trace === undefined ? request : inTrace(options, request, context)
      const sent = vendor.hops ? withHeaders(traced, hopHeaders(context, theirAttempt)) : traced
      return vendor.send(sent, context, listener, cost, onAnswer)
    }
    const { keys } = vendor
    if (keys === undefined || key === undefined) return send()
    return keys.send(key, (onAnswer) =>
      send((answer) => {
        onAnswer(answer)
        // From now on the pause is that of the model's own lane.
        if (answer?.exhaustsModel === true) vendor.noteKnownModel(model, config)
      }),
    )
  }, runOptions)
}

/** The shorter of the route's `timeoutMs` and the client's deadline. Undefined if there is neither. */
function timeLeftMs(
  { request, signal, clock, arrivedMs }: SenderOptions,
  { timeoutMs = Number.POSITIVE_INFINITY }: RouteConfig,
): number | undefined {
  const clientMs = deadlineMs(request.headers['spillway-deadline-ms'])
  const isShorter = clientMs >= 0 && clientMs < timeoutMs
  if (!isShorter && timeoutMs === Number.POSITIVE_INFINITY) return undefined
  if (isShorter) signal.cause = 'deadline'
  return Math.max(0, (isShorter ? clientMs : timeoutMs) - (clock.now() - arrivedMs))
}

function inTrace(
  { version }: SenderOptions,
  request: VendorRequest,
  { traceHeaders }: CallContext,
): VendorRequest {
  const isPassedOn = version.hooks.tracer?.toVendors === true
  return { ...request, headers: withTrace(request.headers, isPassedOn ? traceHeaders : undefined) }
}

function withHeaders(request: VendorRequest, more: readonly string[]): VendorRequest {
  return { ...request, headers: [...request.headers, ...more] }
}
