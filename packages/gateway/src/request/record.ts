/** What is known of a request when it is over, for logs and metrics. No secrets, no bodies. */
import type { BodyEnd } from 'spillway/internal'
import type { Usage } from '../vendor/vendor-response.js'

/** Requests made to one target. */
export interface Tries {
  readonly vendor: string
  attempts: number
}

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
  /** Who answered, or was asked last. */
  readonly vendor: string | undefined
  /** All that were asked, in order; more than one: the others are fallbacks. */
  readonly tries: readonly Readonly<Tries>[]
  readonly attempts: number
  readonly waitedMs: number
  readonly firstByteMs: number | undefined
  readonly durationMs: number
  readonly end: BodyEnd | undefined
  /** Stages in shadow that would have refused it. */
  readonly shadow: readonly string[] | undefined
  readonly usage: Usage | undefined
}
