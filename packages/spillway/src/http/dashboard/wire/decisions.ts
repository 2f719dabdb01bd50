/** What was decided of single calls, and why. */
import type { ErrorCode, Scope, Stage } from '../../../core/errors.js'
import type { Priority } from '../../../core/options/priority.js'

export interface Decisions {
  /** Since the last `decisions`: how many there were of all, and of these records. */
  seen: number
  records: Decision[]
}

export interface Decision {
  /** Unique on this pod. */
  id: number
  at: number
  guard: string
  lane: string
  user?: string
  tier?: string
  priority: Priority
  /** `OK`, `FAILED` (what the call threw came out), `LEFT` (its caller did), or why it was refused. */
  code: ErrorCode | 'OK' | 'FAILED' | 'LEFT'
  /** Where it ended. */
  stage: Stage
  /** Whose state decided. */
  scope: Scope
  /** From its arrival to its end, or to the beginning of a streamed answer. */
  tookMs: number
  attempts: number
  retryAfterMs?: number
  /** In a sentence. */
  why: string
  /** What would have let it in, in a sentence; absent where it was. */
  remedy?: string
  /** The numbers the decision went by. */
  numbers: Record<string, number | string | boolean>
  /** Of what is shared, how old this pod's knowledge was; absent where nothing shared was asked. */
  sharedAgeMs?: number
  /** The stages it went through, in order; the last one is where it ended. */
  path: StageNote[]
  /** False: only its end was noted, under load; times of the path are not known. */
  traced: boolean
}

export interface StageNote {
  stage: Stage
  /** Of which attempt; 0: of the call. */
  attempt: number
  /** Since the call came: when this stage let it go on, or did not. Absent: not known. */
  atMs?: number
  verdict: 'passed' | 'waited' | 'refused' | 'ended'
  scope: Scope
  numbers?: Record<string, number | string | boolean>
}
