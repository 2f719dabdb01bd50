/** Interface of a pod for clients, with or without a guard. */
import type { LeaveSignal } from 'spillway/internal'
import type { CheckedClient } from '../scenario/read-scenario.js'

/** One request of a client. */
export interface SimulatedCall {
  readonly client: CheckedClient
  readonly user: string | undefined
  /** Set if the client may disconnect. */
  readonly signal: LeaveSignal | undefined
}

export interface SimulatedPod {
  run(call: SimulatedCall): Promise<unknown>
  /** Queued calls. */
  readonly waiting: number
  /** Drains the pod. */
  close(graceMs: number): Promise<void>
}
