/** The answer to `GET explain?request=…`: what happened to one request, on any pod. */
import type { Decision } from './decisions.js'

/** Explanation of one request, from any pod. */
export interface Explanation {
  /** The requested id. */
  requestId: string
  /** The request as its gateway saw it; absent if no pod remembers it. */
  request?: RequestSummary
  /** Decisions of guards on its calls, the oldest first. Under load only some calls are recorded. */
  decisions: Decision[]
  /** Number of other pods that were searched. */
  podsQueried: number
  /** Number of those that answered in time. */
  podsAnswered: number
}

/** One request, as the gateway answered it. Contains no body, key or path. */
export interface RequestSummary {
  /** The pod that served it. */
  pod: string
  /** When it came in, in ms since 1970. */
  at: number
  /** From its arrival to the end of its answer. */
  tookMs: number
  /** HTTP status of the answer. 499: the client disconnected before it. */
  status: number
  /** Why it was refused or failed, if it was. */
  code?: string
  /** Text of the code, if the gateway itself refused the request. */
  why?: string
  /** The user it was charged to, if any. */
  user?: string
  /** The tier of the user, if any. */
  tier?: string
  /** The model it named, if any. */
  model?: string
  /** Name of the route that took it, if any. */
  route?: string
  /** The vendors that were tried, in order, with the number of requests to each. */
  vendorAttempts: { vendor: string; attempts: number }[]
  /** The fallback that answered, and the reason. */
  degraded?: {
    /** Name of the fallback. */
    step: string
    /** Why the usual target did not answer. */
    reason: string
  }
}
