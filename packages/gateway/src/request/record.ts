/** Record of an ended request, for logs and metrics. It contains no secrets and no bodies. */
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
  /** 499: the client disconnected before the answer. */
  readonly status: number
  /** Why it was refused, or failed. */
  readonly code: string | undefined
  readonly stage: string | undefined
  /** The vendor that answered, or the last one tried. */
  readonly vendor: string | undefined
  /** All targets tried, in order; those after the first are fallbacks. */
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
