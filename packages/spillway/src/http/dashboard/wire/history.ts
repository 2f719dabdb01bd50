/** What was before the page was opened. */

/** Columns of numbers, one for each step; `null`: nothing is known of it. The last step may not be over. */
export interface History {
  /** A guard; nothing: the pod. */
  guard?: string
  stepMs: number
  /** When the first step began. */
  fromAt: number
  columns: Record<string, (number | null)[]>
}

/** Columns of a guard's history. Counts are a second's; percentiles and gauges those of the step's end. */
export type GuardColumn =
  | 'calls'
  | 'refused'
  | 'failures'
  | 'throttled'
  | 'fallbacks'
  | 'active'
  | 'waiting'
  | 'p50Ms'
  | 'p99Ms'
  | 'breaker'

export type PodColumn = 'pressure' | 'loopMs' | 'inFlight' | 'waiting' | 'pods' | 'degraded'
