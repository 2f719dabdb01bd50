/** One decision about one call, as the log keeps it. */
import type { Details, ErrorCode, Scope, Stage } from '../../core/errors.js'
import type { ReplacedCall } from './replaced-call.js'

export interface PathNote {
  stage: Stage
  /** Of which attempt; 0: of the call. */
  attempt: number
  /** Since the call came; nothing: not known. */
  atMs: number | undefined
  verdict: 'passed' | 'waited' | 'refused' | 'ended'
  scope: Scope
  numbers: Details | undefined
}

export interface DecisionRecord {
  /** Grows by one with each. */
  id: number
  /** By the pod's clock: when the call came, and how long it took. */
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
  /** A sentence of ours; nothing of what a downstream or a user's function said. */
  why: string
  details: Details
  /** How old was what this pod knew of shared state; nothing: none was asked. */
  sharedAgeMs: number | undefined
  path: PathNote[]
  /** False: only its end was noted. */
  traced: boolean
}
