/** What pods and their parent say to each other. */
export interface PodReport {
  calls: number
  refused: number
  /** From asking the guard to the call or the refusal; nobody waits for anything but the store. */
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
