/** What was typed, of commands whose running is loaded later than their reading. */
import type { PlanNeeds } from '@spillway/simulator'

export interface GatewayCommand {
  /** Nothing: `spillway.yaml` if there is one here, otherwise what is built in. */
  readonly config: string | undefined
  readonly port: number | undefined
  readonly adminPort: number | undefined
}

export interface SimulateCommand {
  /** A scenario that comes along, `all` of them, or a file. */
  readonly what: string
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly seed: number | undefined
  readonly pods: number | undefined
  readonly report: string | undefined
  readonly json: boolean
}

export interface PlanCommand {
  readonly needs: PlanNeeds
  /** Checked in place of our own advice. */
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly out: string | undefined
  readonly json: boolean
  readonly check: boolean
}

interface QueueCommon {
  /** Nothing: `spillway.yaml`, if there is one here. */
  readonly config: string | undefined
  /** In place of the configuration's. */
  readonly redis: string | undefined
  readonly prefix: string | undefined
  readonly json: boolean
}

export type QueueCommand = QueueCommon &
  (
    | { readonly verb: 'ls' }
    | {
        readonly verb: 'show'
        readonly name: string
        /** A job; nothing: the queue, and its oldest dead letters. */
        readonly id: string | undefined
        readonly count: number
      }
    | {
        readonly verb: 'retry' | 'drop'
        readonly name: string
        /** Nothing: all dead letters. */
        readonly id: string | undefined
        readonly yes: boolean
      }
  )
