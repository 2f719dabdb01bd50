/** Record of an ended request, for logs and metrics. It contains no secrets and no bodies. */
import { SpillwayError } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import type { BodyEnd, TokenUsage } from 'spillway/internal'
import type { RouteConfig } from '../config/config.js'
import { faultOf } from '../response/errors.js'
import { maskedName } from '../response/privacy.js'
import type { Caller } from './callers.js'
import type { ClientRequest, ClientResponse } from './client-http.js'
import type { RoutedRequest } from './routed-request.js'

const HUNG_UP_STATUS = 499

/** Requests made to one target. */
export interface VendorAttempts {
  readonly vendor: string
  attempts: number
}

/** The fallback that answered in place of the usual target, and the reason. `model`, `target`: a target with `when`. */
export interface Degraded {
  readonly step: 'cached' | 'static' | 'model' | 'target'
  readonly reason: DegradedReason | 'pressure'
}

export interface RequestRecord {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly route: string | undefined
  readonly user: string | undefined
  readonly tier: string | undefined
  readonly priority: string | undefined
  readonly model: string | undefined
  /** The model that the vendor was sent, if the target replaces it. */
  readonly sentModel: string | undefined
  readonly streamed: boolean
  /** 499: the client disconnected before the answer. */
  readonly status: number
  /** Why it was refused, or failed. */
  readonly code: string | undefined
  readonly stage: string | undefined
  /** The vendor that answered, or the last one tried. */
  readonly vendor: string | undefined
  /** All targets tried, in order; those after the first are fallbacks. */
  readonly vendorAttempts: readonly Readonly<VendorAttempts>[]
  readonly attempts: number
  /** Set if the client got something other than the answer of the usual target. */
  readonly degraded: Degraded | undefined
  readonly waitedMs: number
  readonly firstByteMs: number | undefined
  readonly durationMs: number
  readonly end: BodyEnd | undefined
  /** Stages in shadow that would have refused it. */
  readonly shadow: readonly string[] | undefined
  readonly usage: TokenUsage | undefined
}

/** Inputs of a record. */
export interface EndedRequest {
  readonly id: string
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly shownPath: string
  readonly caller: Caller | undefined
  readonly route: RouteConfig | undefined
  readonly routed: RoutedRequest | undefined
  readonly sender: Pick<
    RequestRecord,
    | 'vendor'
    | 'sentModel'
    | 'vendorAttempts'
    | 'attempts'
    | 'degraded'
    | 'waitedMs'
    | 'end'
    | 'shadow'
    | 'usage'
  >
  /** The client disconnected before the answer was complete. */
  readonly hungUp: boolean
  /** The error that ended the answer early, or was answered. */
  readonly error: unknown
  readonly firstByteMs: number | undefined
  readonly durationMs: number
}

export function recordOf(ended: EndedRequest): RequestRecord {
  const { request, response, caller, routed, sender, hungUp, error, firstByteMs } = ended
  const { attempts } = sender
  const fault = error === undefined ? undefined : faultOf(error, undefined, attempts > 0)
  return {
    id: ended.id,
    method: request.method ?? 'GET',
    path: ended.shownPath,
    route: ended.route?.name,
    user: masked(caller?.user),
    tier: masked(caller?.tier),
    priority: caller?.priority,
    model: masked(routed?.facts.model),
    sentModel: sender.sentModel,
    streamed: routed?.facts.streamed ?? false,
    status: hungUp && !response.headersSent ? HUNG_UP_STATUS : response.statusCode,
    code: hungUp ? 'HUNG_UP' : fault?.code,
    stage: error instanceof SpillwayError ? error.stage : undefined,
    vendor: sender.vendor,
    vendorAttempts: sender.vendorAttempts,
    attempts,
    degraded: sender.degraded,
    waitedMs: tenths(sender.waitedMs),
    firstByteMs: firstByteMs === undefined ? undefined : tenths(firstByteMs),
    durationMs: tenths(ended.durationMs),
    end: sender.end,
    shadow: sender.shadow,
    usage: sender.usage,
  }
}

/** Logs have tenths of a millisecond. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

function masked(name: string | undefined): string | undefined {
  return name === undefined ? undefined : maskedName(name)
}
