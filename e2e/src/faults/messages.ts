/** Messages between pods and their parent process. */
export interface PodReport {
  calls: number
  refused: number
  /** Milliseconds from `guard.run` to the start of the function or the refusal. Calls wait only for the store. */
  longestWaitMs: number
  /** The longest delay of a timer in this process, in milliseconds. */
  stallMs: number
  unhandled: number
  falseRefusals: number
}

export type FromPod =
  | { kind: 'status'; status: string }
  | { kind: 'breaker'; lane: string; to: string }
  | { kind: 'report'; report: PodReport }

export type ToPod = 'dns-gone' | 'dns-back' | 'trip' | 'report' | 'reset'
