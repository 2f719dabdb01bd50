/** What is known of a request when it is over, for logs and metrics. No secrets, no bodies. */
import type { BodyEnd } from 'spillway'
import type { Usage } from './vendor-answer.js'

export interface RequestRecord {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly route: string | undefined
  readonly user: string | undefined
  readonly tier: string | undefined
  readonly priority: string | undefined
  readonly model: string | undefined
  readonly streamed: boolean
  /** 499: the client left before it got one. */
  readonly status: number
  /** Why it was refused, or failed. */
  readonly code: string | undefined
  readonly stage: string | undefined
  readonly vendor: string | undefined
  readonly attempts: number
  /** Which target answered; 0 is the one that was meant. */
  readonly step: number
  readonly waitedMs: number
  readonly firstByteMs: number | undefined
  readonly durationMs: number
  readonly end: BodyEnd | undefined
  readonly usage: Usage | undefined
}
