/** A request that an application or a gateway has answered, as it reports it to the dashboard. */
import { requestIdOf, rounded, shown } from '../shown.js'
import type { RequestSummary } from '../wire/explain.js'
import { refusalWords } from './refusal-text.js'

/** An answered request, for `dashboard.noteRequest()`. Names are masked and cut before they are shown. */
export interface NotedRequest {
  /** Id of the request: 1 to 128 letters, digits and `_ . : -`. */
  readonly id: string
  /** HTTP status of the answer. */
  readonly status: number
  /** Why it was refused or failed. Default: it was not. */
  readonly code?: string | undefined
  /** The user it was charged to. Default: none. */
  readonly user?: string | undefined
  /** The tier of the user. Default: none. */
  readonly tier?: string | undefined
  /** The model it named. Default: none. */
  readonly model?: string | undefined
  /** Name of the route that took it. Default: none. */
  readonly route?: string | undefined
  /** The vendors that were tried, in order. Empty: the request was refused before any guard. */
  readonly vendorAttempts: readonly { readonly vendor: string; readonly attempts: number }[]
  /** The fallback that answered, and the reason. Default: the usual target answered. */
  readonly degraded?: { readonly step: string; readonly reason: string } | undefined
  /** From its arrival to the end of its answer. Range: from 0 ms. */
  readonly durationMs: number
}

const MOST_VENDORS = 20

/** `endedAt`: in ms since 1970. */
export function summaryOf(request: NotedRequest, pod: string, endedAt: number): RequestSummary {
  const { status, code, user, tier, model, route, vendorAttempts, degraded, durationMs } = request
  return {
    pod,
    at: Math.round(endedAt - durationMs),
    tookMs: rounded(durationMs),
    status,
    ...(code !== undefined && { code: shown(code) }),
    ...(isOwnRefusal(request) && { why: refusalWords(code) }),
    ...(user !== undefined && { user: shown(user) }),
    ...(tier !== undefined && { tier: shown(tier) }),
    ...(model !== undefined && { model: shown(model) }),
    ...(route !== undefined && { route: shown(route) }),
    vendorAttempts: vendorAttempts.slice(0, MOST_VENDORS).map(({ vendor, attempts }) => {
      return { vendor: shown(vendor), attempts }
    }),
    ...(degraded !== undefined && {
      degraded: { step: shown(degraded.step), reason: shown(degraded.reason) },
    }),
  }
}

/** The gateway itself refused it, before any guard had a call. */
export function isOwnRefusal({ status, code, vendorAttempts, id }: NotedRequest): boolean {
  const isRefused = code !== undefined && status >= 400 && code !== 'HUNG_UP'
  return isRefused && vendorAttempts.length === 0 && requestIdOf(id) !== undefined
}
