/** What a client's request meets: a pod, guarded or not. */
import type { LeaveSignal } from 'spillway/internal'
import type { CheckedClient } from '../scenario/read-scenario.js'

/** One time that a client asks. */
export interface Ask {
  readonly client: CheckedClient
  readonly user: string | undefined
  /** Of those who will hang up. */
  readonly signal: LeaveSignal | undefined
}

export interface SimulatedPod {
  run(ask: Ask): Promise<unknown>
  /** Calls in line. */
  readonly waiting: number
  /** Drains. */
  close(graceMs: number): Promise<void>
}
