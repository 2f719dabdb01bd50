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
  /** Name of the guard. */
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
   * `OK`, `DEGRADED` (a fallback answered), `FAILED` (the call threw), `ABORTED` (the caller aborted), or the code of
   * the refusal.
   */
  code: ErrorCode | 'OK' | 'DEGRADED' | 'FAILED' | 'ABORTED'
  /** The stage where it ended. */
  stage: Stage
  /** Whether local or shared state decided. */
  scope: Scope
  /** From its arrival to its end, or to the beginning of a streamed response. */
  tookMs: number
  /** How often the function was started. */
  attempts: number
  /** Wait in ms that was suggested to the caller, if any. */
  retryAfterMs?: number
  /** The reason in a sentence. */
  why: string
  /** What would have admitted it, in a sentence; absent if it was admitted. */
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
