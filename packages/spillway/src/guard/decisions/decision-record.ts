/** One decision about one call, as stored in the log. */
import type { Details, ErrorCode, Scope, Stage } from '../../core/errors.js'
import type { ReplacedCall } from './replaced-call.js'

export interface PathNote {
  stage: Stage
  /** Number of the attempt; 0 for stages of the call. */
  attempt: number
  /** Milliseconds since the call arrived; undefined if unknown. */
  atMs: number | undefined
  verdict: 'passed' | 'waited' | 'refused' | 'ended'
  scope: Scope
  numbers: Details | undefined
}

export interface DecisionRecord {
  /** Number of the record, ascending by one. */
  id: number
  /** By the pod's clock: arrival and duration of the call. */
  arrivedMs: number
  tookMs: number
  /** Id of the request that the call belongs to, if the caller gave one. */
  requestId: string | undefined
  guard: string
  lane: string
  user: string | undefined
  tier: string | undefined
  /** 0 for the most important. */
  importance: number
  /**
   * `DEGRADED`: a fallback answered. `FAILED`: the call threw, or its answer is a failure such as a 503. `REJECTED`:
   * the downstream did not accept the request, such as a 404. `ABORTED`: its caller aborted it. Otherwise the code of
   * the refusal, or of the server that refused the request before any guard.
   */
  code: ErrorCode | 'OK' | 'DEGRADED' | 'FAILED' | 'REJECTED' | 'ABORTED' | (string & {})
  /** HTTP status of the downstream's last answer, if it has one. */
  status: number | undefined
  /** The call in whose place this one was made, or a fallback answered. */
  replaces: ReplacedCall | undefined
  stage: Stage
  scope: Scope
  attempts: number
  retryAfterMs: number | undefined
  /** A sentence by Spillway, without text from the downstream or the user's function. */
  why: string
  details: Details
  /** Age of the shared state that this pod used; undefined if no shared stage was involved. */
  sharedAgeMs: number | undefined
  path: PathNote[]
  /** False: only its end was noted. */
  traced: boolean
}
