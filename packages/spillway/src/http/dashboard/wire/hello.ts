/** What a page is told first: who speaks, what there is to draw, and what may be done. */
import type { Stage } from '../../../core/errors.js'
import type { StageRow } from '../../../guard/pipeline/stages.js'
import type { Act } from './acts.js'

/** Of this wire format; a page that knows another one asks to be loaded again. */
export type WireVersion = 1

export interface Hello {
  wire: WireVersion
  /** Of this process: another one, other ids. */
  boot: string
  at: number
  /** This pod, and the release it runs. */
  pod: string
  version: string
  /** The built-in stages, in order. */
  stages: readonly StageRow[]
  guards: GuardCard[]
  queues: string[]
  /**
   * `token`: acts need `Authorization: Bearer …`; `open`: not from where this reader is; `off`: nobody may act
   * from here, because no token is configured and this is not the same machine.
   */
  acts: 'token' | 'open' | 'off'
  /** What may be asked for; an older server, or one without a store to act on, knows fewer. */
  may: Act['act'][]
  demo: DemoState | undefined
  /** How much history there is at each step. */
  keeps: { fineStepMs: number; finePoints: number; coarseStepMs: number; coarsePoints: number }
}

/** What about a guard's options matters for drawing it. Absent: that stage is off. */
export interface GuardCard {
  name: string
  /** The stages that are on. */
  on: Stage[]
  /** Present if the guard has stages of its own: all its stages, in order. */
  stages?: readonly StageRow[]
  shed?: { maxQueue?: number; maxInFlight?: number; tiers?: Record<string, number> }
  /** `limit` absent: not everybody's is the same, `by` has those that are limited. */
  userLimits?: { per: string; limit?: number; by?: Record<string, number>; windowMs: number }[]
  queue?: { size: number; timeoutMs: number }
  breaker?: {
    failureRate?: number
    slowRate?: number
    consecutiveFailures?: number
    minimumCalls?: number
    windowMs?: number
    openMs: number
    probes: number
    successes: number
    quorum?: number
    per: 'lane' | 'vendor'
    shadow: boolean
  }
  limits?: { id: string; unit: string; limit: number; windowMs: number; per: 'lane' | 'vendor' }[]
  pace?: { limit: number; windowMs: number }
  concurrency?: { limit: number; adaptive: boolean }
  timeout?: { callMs?: number; firstByteMs?: number; idleMs?: number }
  retry?: { attempts: number; budget?: number }
  fallbacks: string[]
}

export interface DemoState {
  /** A built-in load on the mock vendor. */
  load: boolean
  /** The mock vendor answers with errors. */
  broken: boolean
}
