/** History from before the page was opened. */

/** Columns of numbers, one per step; `null`: unknown. The last step may be incomplete. */
export interface History {
  /** Name of the guard; undefined: the pod. */
  guard?: string
  stepMs: number
  /** When the first step began. */
  fromAt: number
  columns: Record<string, (number | null)[]>
}

/**
 * Columns of a guard's history. Counts are per second; percentiles and gauges are those at the end
 * of the step.
 */
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

/**
 * Columns of the pod's history. Those that begin with `fleet` are of all pods: known while there is a reader, and
 * always if this is the only pod.
 */
export type PodColumn =
  | 'pressure'
  | 'loopMs'
  | 'inFlight'
  | 'waiting'
  | 'pods'
  | 'degraded'
  | 'fleetCalls'
  | 'fleetRefused'
  | 'fleetInFlight'
  | 'fleetWaiting'
