/** The answer to `GET explain?request=…`: what became of one request, on whichever pod it was. */
import type { Decision } from './decisions.js'

export interface Explanation {
  requestId: string
  /** The request as its gateway saw it; absent if no pod remembers it. */
  request?: RequestSummary
  /** Decisions of guards on its calls, the oldest first. Under load only some calls are recorded. */
  decisions: Decision[]
  /** Other pods that were asked, and those that answered in time. */
  podsAsked: number
  podsAnswered: number
}

/** One request, as the gateway answered it. Contains no body, key or path. */
export interface RequestSummary {
  /** The pod that served it. */
  pod: string
  /** When it came in, in ms since 1970, and how long it took. */
  at: number
  tookMs: number
  /** HTTP status of the answer. 499: the client disconnected before it. */
  status: number
  /** Why it was refused or failed, if it was. */
  code?: string
  /** The code in words, if the gateway itself refused the request. */
  why?: string
  user?: string
  tier?: string
  model?: string
  route?: string
  /** The vendors that were tried, in order, with the number of requests to each. */
  tries: { vendor: string; attempts: number }[]
  /** What answered in place of the usual target, and why. */
  degraded?: { step: string; reason: string }
}
