/** What pods and their parent say to each other. */
export interface PodReport {
  calls: number
  refused: number
  /** From `guard.run` to the start of the function or the refusal. Calls wait only for the store. */
  longestWaitMs: number
  /** The longest this process itself was late. */
  stallMs: number
  unhandled: number
  falseRefusals: number
}

export type FromPod =
  | { kind: 'status'; status: string }
  | { kind: 'breaker'; lane: string; to: string }
  | { kind: 'report'; report: PodReport }

export type ToPod = 'dns-gone' | 'dns-back' | 'trip' | 'report' | 'reset'
