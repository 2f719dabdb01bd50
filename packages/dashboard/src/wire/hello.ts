/** The first message to a page: the pod, the guards to draw, and the actions allowed. */
import type { Stage } from 'spillway'
import type { StageRow } from 'spillway/internal'
import type { Act } from './acts.js'

/** Version of this wire format; a page with another version reloads itself. */
export type WireVersion = 1

export interface Hello {
  wire: WireVersion
  /** Id of this process; ids of messages are valid within it. */
  boot: string
  at: number
  /** This pod and its version. */
  pod: string
  /** Decisions are those of several processes, such as the workers of a gateway. */
  hasPeers: boolean
  version: string
  /** The built-in stages, in order. */
  stages: readonly StageRow[]
  guards: GuardCard[]
  jobQueues: string[]
  /**
   * `token`: actions need `Authorization: Bearer …`. `open`: they do not, for this reader. `off`:
   * no actions from here, because no token is configured and this is not the same machine.
   */
  acts: 'token' | 'open' | 'off'
  /** Available actions; an older server, or one without a shared store, has fewer. */
  may: Act['act'][]
  demo: DemoState | undefined
  /** How much history there is at each step. */
  keeps: { fineStepMs: number; finePoints: number; coarseStepMs: number; coarsePoints: number }
}

/** The part of a guard's options that is drawn. Absent: that stage is off. */
export interface GuardCard {
  name: string
  /** The stages that are on. */
  on: Stage[]
  /** Present if the guard has stages of its own: all its stages, in order. */
  stages?: readonly StageRow[]
  shed?: { maxQueue?: number; maxInFlight?: number; tiers?: Record<string, number> }
  /** `limit` absent: limits differ, and `by` has those that are set. */
  userLimits?: {
    per: string
    limit?: number
    by?: Record<string, number>
    windowMs: number
    /** Present for an exact sliding window; absent for a token bucket. */
    sliding?: true
  }[]
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
  limits?: {
    id: string
    unit: string
    limit: number
    /** Undefined for calendar days. */
    windowMs?: number
    /** Of calendar days. */
    timeZone?: string
    per: 'lane' | 'vendor'
  }[]
  pace?: { limit: number; windowMs: number }
  concurrency?: { limit: number; adaptive: boolean }
  timeout?: { callMs?: number; firstByteMs?: number; idleMs?: number }
  retry?: { attempts: number; budget?: number }
  fallbacks: string[]
}

export interface DemoState {
  /** A built-in load on the mock vendor. */
  load: boolean
  /** The mock vendor responds with errors. */
  broken: boolean
}
