/** Decisions on single calls, with reasons. */
import type { ErrorCode, Priority, Scope, Stage } from 'spillway'

export interface Decisions {
  /** Since the last `decisions`: the number of all decisions, and of these records. */
  seen: number
  records: Decision[]
}

/** A decision on one call. */
export interface Decision {
  /** Unique within `pod`, which is the process that decided. */
  id: number
  /** Name of the pod; of a worker, with its number. */
  pod: string
  /** When the call came in, in ms since 1970. */
  at: number
  /** Id of the request that the call belongs to, if it is known. */
  requestId?: string
  /** Name of the guard; empty: the gateway itself refused the request. */
  guard: string
  /** Lane of the guard, for example a model. */
  lane: string
  /** The user it was charged to, if any. */
  user?: string
  /** The tier of the user, if any. */
  tier?: string
  /** Priority of the call. */
  priority: Priority
  /**
   * `OK`, `DEGRADED` (a fallback answered), `FAILED` (the call threw, or its answer is a failure such as a 503),
   * `REJECTED` (the downstream did not accept the request, such as a 404), `ABORTED` (the caller aborted), the code of
   * the refusal, or a code of the gateway itself, such as `UNKNOWN_KEY`.
   */
  code: ErrorCode | EndCode | (string & {})
  /** HTTP status of the downstream's answer, or of the gateway's refusal. */
  status?: number
  /** The call in whose place this one was made. */
  replaces?: ReplacedDecision
  /** Units that a refused call requested of a limit, and units that were left. */
  requested?: Requested
  /** The stage where it ended; `request`: the gateway itself refused the request. */
  stage: Stage
  /** Whether local or shared state decided. */
  scope: Scope
  /** From its arrival to its end, or to the beginning of a streamed response. */
  tookMs: number
  /** Number of attempts. */
  attempts: number
  /** Wait in ms that was suggested to the caller, if any. */
  retryAfterMs?: number
  /** The reason in a sentence. */
  why: string
  /** The remedy, in a sentence; absent if the call was admitted. */
  remedy?: string
  /** The numbers behind the decision. */
  numbers: Record<string, number | string | boolean>
  /** Age of this pod's shared state; absent if none was used. */
  sharedAgeMs?: number
  /** The stages it passed, in order; it ended in the last one. */
  path: StageNote[]
  /** False: only its end was recorded, under load; times of the path are unknown. */
  traced: boolean
}

/** The call in whose place another one was made. */
export interface ReplacedDecision {
  /** Name of its guard. */
  guard: string
  /** Its lane, if it is known. */
  lane?: string
  /** Code of its decision. */
  code: string
  /** HTTP status of the downstream's answer, if it has one. */
  status?: number
}

export type EndCode = 'OK' | 'DEGRADED' | 'FAILED' | 'REJECTED' | 'ABORTED'

export interface Requested {
  /** Such as `tokens`. */
  unit: string
  requested: number
  left: number
  limit: number
  /** When enough is expected to be free, in ms since 1970. Absent: unknown. */
  untilAt?: number
}

export interface StageNote {
  stage: Stage
  /** Number of the attempt; 0: the call. */
  attempt: number
  /** Time since the call came in when this stage decided. Absent: unknown. */
  atMs?: number
  verdict: 'passed' | 'waited' | 'refused' | 'ended'
  scope: Scope
  numbers?: Record<string, number | string | boolean>
}
