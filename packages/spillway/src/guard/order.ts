/**
 * The stages of a call, in order, first is outermost. Written once, for whoever shows or counts them:
 * docs print this table, errors and metrics use its names, and the tests walk through it, stage by
 * stage and pair by pair, to see that the guard goes this way.
 */
import type { ErrorCode, Scope, Stage } from '../core/errors.js'

export interface StageRow {
  readonly stage: Stage
  /** The option that switches it on. */
  readonly option: string
  /** Whose state decides. */
  readonly scope: Scope
  /** How often in a call: once, or once for each attempt. */
  readonly per: 'call' | 'attempt'
  /** What it refuses with. */
  readonly codes: readonly ErrorCode[]
  /** It can be in shadow: decide and report, and refuse nobody. */
  readonly shadow: boolean
}

export const ORDER = [
  { stage: 'shed', option: 'shed', scope: 'local', per: 'call', codes: ['SHED'], shadow: true },
  {
    stage: 'user-limit',
    option: 'userLimits',
    scope: 'shared',
    per: 'call',
    codes: ['USER_LIMITED', 'STORE_UNAVAILABLE'],
    shadow: true,
  },
  {
    stage: 'room',
    option: 'queue',
    scope: 'local',
    per: 'call',
    codes: ['QUEUE_FULL', 'QUEUE_TIMEOUT', 'SHED', 'DEADLINE_EXCEEDED'],
    shadow: false,
  },
  {
    stage: 'breaker',
    option: 'breaker',
    scope: 'shared',
    per: 'attempt',
    codes: ['CIRCUIT_OPEN'],
    shadow: true,
  },
  {
    stage: 'vendor-limit',
    option: 'limits',
    scope: 'shared',
    per: 'attempt',
    codes: ['VENDOR_LIMITED', 'STORE_UNAVAILABLE'],
    shadow: true,
  },
  {
    stage: 'pace',
    option: 'pace',
    scope: 'local',
    per: 'attempt',
    codes: ['QUEUE_FULL'],
    shadow: true,
  },
  {
    stage: 'concurrency',
    option: 'concurrency',
    scope: 'local',
    per: 'attempt',
    codes: ['QUEUE_FULL'],
    shadow: true,
  },
  {
    stage: 'timeout',
    option: 'timeout',
    scope: 'local',
    per: 'attempt',
    codes: ['CALL_TIMEOUT', 'DEADLINE_EXCEEDED'],
    shadow: false,
  },
  { stage: 'call', option: 'run', scope: 'local', per: 'attempt', codes: [], shadow: false },
  { stage: 'retry', option: 'retry', scope: 'local', per: 'call', codes: [], shadow: false },
] as const satisfies readonly StageRow[]

type Row = (typeof ORDER)[number]

/** A stage that can be in shadow. */
export type ShadowStage = Extract<Row, { shadow: true }>['stage']

export const SHADOW_ROWS = ORDER.filter((row): row is Extract<Row, { shadow: true }> => row.shadow)
