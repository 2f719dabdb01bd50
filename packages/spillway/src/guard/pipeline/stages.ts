/**
 * The table of stages, in order. A guard is this table filtered by its options, with custom stages inserted at
 * their position. A call runs through the result: swapping two rows changes the order within a phase (`check`, then
 * `enter`, then `acquire`). Errors, metrics, decisions, dashboard and docs use the same rows.
 */
import type { BuiltInStage, ErrorCode, Scope, Stage as StageName } from '../../core/errors.js'
import { suggest } from '../../core/options/suggest.js'
import type { OutcomeOptions } from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { CheckedHedgeDelay } from '../../local/hedge/hedge-delay.js'
import type { CheckedShed } from '../../local/load-shedder/options.js'
import { Shedder } from '../../local/load-shedder/shedder.js'
import type { CheckedThrottle } from '../../local/throttle.js'
import type { BreakerLanes } from '../../shared/circuit-breaker/breaker-lanes.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { LimitClient } from '../../shared/rate-limiter/limit-client.js'
import type { UserCharges } from '../../shared/user-limits/charges.js'
import { BreakerStage } from '../stages/breaker.js'
import type { ConcurrencyStage } from '../stages/concurrency.js'
import { type CustomStage, CustomStageRunner } from '../stages/custom.js'
import { FallbackStage, type FallbackStep } from '../stages/fallback.js'
import { HedgeStage } from '../stages/hedge.js'
import type { PaceStage } from '../stages/pace.js'
import type { QueueStage } from '../stages/queue.js'
import { type RetryOption, RetryStage } from '../stages/retry.js'
import { type ShedQuestion, ShedStage } from '../stages/shed.js'
import { ThrottleStage } from '../stages/throttle.js'
import { type TimeoutOption, TimeoutStage } from '../stages/timeout.js'
import { UserLimitStage } from '../stages/user-limit.js'
import { VendorLimitStage } from '../stages/vendor-limit.js'
import type { Stage } from './stage.js'

/** One row of the table, for docs and dashboards. */
export interface StageRow {
  readonly stage: StageName
  /** The guard option that switches it on. */
  readonly option: string
  /** Whose state decides: this pod's, or the state that all pods share. */
  readonly scope: Scope
  /** Once in a call, or once for each attempt. */
  readonly per: 'call' | 'attempt'
  /** The codes it refuses with. */
  readonly codes: readonly ErrorCode[]
  /** It can run in shadow mode: decide and report, and let every call pass. */
  readonly shadow: boolean
}

export interface StageDefinition extends StageRow {
  /** For a custom stage: the stage before it. */
  readonly after?: string | undefined
  /** The stage of one guard; undefined if its option is not set. */
  create?(context: StageContext): Stage | undefined
}

/** Inputs for the stages of one guard. */
export interface StageContext {
  readonly guard: string
  readonly options: StageOptions
  readonly clock: Clock
  readonly random: Random
  /** How the end of an attempt is judged. */
  readonly judging: OutcomeOptions
  readonly lanes: LaneRegistry
  readonly slots: ConcurrencyStage
  readonly queue: QueueStage
  /** The store is in this process and uses the same clock. */
  readonly sameClock: boolean
  readonly charges: UserCharges | undefined
  readonly breaker: BreakerLanes | undefined
  readonly limits: LimitClient | undefined
  readonly pace: PaceStage | undefined
  readonly shadowed: ReadonlySet<StageName>
  /** Stages that were created before this one. */
  built<S extends Stage>(name: BuiltInStage): S | undefined
}

/** The checked options that stages read. */
export interface StageOptions {
  readonly shed:
    | (CheckedShed & { when: ((question: ShedQuestion) => boolean) | undefined })
    | undefined
  readonly throttle: CheckedThrottle | undefined
  readonly basePauseMs: number
  readonly maxPauseMs: number
  readonly pace: { limit: number; windowMs: number; burst: number | undefined } | undefined
  readonly concurrency: { limit: number | undefined; graceMs: number } | undefined
  readonly timeout: TimeoutOption | undefined
  readonly retry: RetryOption | undefined
  readonly hedge: (CheckedHedgeDelay & { lane: string | undefined }) | undefined
  readonly fallback: readonly FallbackStep[] | undefined
  readonly fetch: { readonly hops: { readonly retried: string } | undefined } | undefined
}

export const STAGES = [
  {
    stage: 'shed',
    option: 'shed',
    scope: 'local',
    per: 'call',
    codes: ['SHED'],
    shadow: true,
    create({ guard, options: { shed }, clock, random, queue, slots }: StageContext) {
      if (shed === undefined) return undefined
      const shedder = new Shedder(guard, shed, clock, random)
      return new ShedStage(guard, clock, shedder, shed.when, queue, slots)
    },
  },
  {
    stage: 'user-limit',
    option: 'userLimits',
    scope: 'shared',
    per: 'call',
    codes: ['USER_LIMITED', 'STORE_UNAVAILABLE'],
    shadow: true,
    create: ({ guard, charges, clock, sameClock }: StageContext) =>
      charges && new UserLimitStage(guard, charges, clock, sameClock),
  },
  {
    stage: 'queue',
    option: 'queue',
    scope: 'local',
    per: 'call',
    codes: ['QUEUE_FULL', 'QUEUE_TIMEOUT', 'SHED', 'DEADLINE_EXCEEDED'],
    shadow: false,
    create: ({ queue }: StageContext) => queue,
  },
  {
    stage: 'breaker',
    option: 'breaker',
    scope: 'shared',
    per: 'attempt',
    codes: ['CIRCUIT_OPEN'],
    shadow: true,
    create: ({ breaker, shadowed }: StageContext) =>
      breaker && new BreakerStage(breaker, shadowed.has('breaker')),
  },
  {
    stage: 'throttle',
    option: 'throttle',
    scope: 'local',
    per: 'attempt',
    codes: ['THROTTLED'],
    shadow: true,
    create({ guard, options: { throttle }, clock, random, lanes, shadowed }: StageContext) {
      const shadow = shadowed.has('throttle')
      return throttle && new ThrottleStage(guard, throttle, clock, random, lanes, shadow)
    },
  },
  {
    stage: 'vendor-limit',
    option: 'limits',
    scope: 'shared',
    per: 'attempt',
    codes: ['VENDOR_LIMITED', 'STORE_UNAVAILABLE'],
    shadow: true,
    // Without limits it still pauses a lane after a 429.
    create: ({ guard, options, clock, limits, queue, shadowed }: StageContext) =>
      new VendorLimitStage({
        guard,
        clock,
        limits,
        queue,
        basePauseMs: options.basePauseMs,
        maxPauseMs: options.maxPauseMs,
        shadow: shadowed.has('vendor-limit'),
      }),
  },
  {
    stage: 'pace',
    option: 'pace',
    scope: 'local',
    per: 'attempt',
    codes: ['QUEUE_FULL'],
    shadow: true,
    create: ({ pace }: StageContext) => pace,
  },
  {
    stage: 'concurrency',
    option: 'concurrency',
    scope: 'local',
    per: 'attempt',
    codes: ['QUEUE_FULL'],
    shadow: true,
    // Without a limit it still counts the attempts that run.
    create: ({ slots }: StageContext) => slots,
  },
  {
    stage: 'timeout',
    option: 'timeout',
    scope: 'local',
    per: 'attempt',
    codes: ['CALL_TIMEOUT', 'DEADLINE_EXCEEDED'],
    shadow: false,
    // Without its own limits it still ends attempts at the deadline of their request.
    create: ({ guard, options: { timeout }, clock }: StageContext) =>
      new TimeoutStage(guard, timeout, clock),
  },
  { stage: 'call', option: 'run', scope: 'local', per: 'attempt', codes: [], shadow: false },
  {
    stage: 'retry',
    option: 'retry',
    scope: 'local',
    per: 'call',
    codes: [],
    shadow: false,
    // Without retries it still reports the attempt of `tryRun`, and has the budget of hedges.
    create: ({
      guard,
      options,
      clock,
      random,
      breaker,
      judging,
      lanes,
      queue,
      slots,
    }: StageContext) =>
      new RetryStage({
        guard,
        retry: options.retry,
        hedges: options.hedge !== undefined,
        retriedHeader: options.fetch?.hops?.retried,
        clock,
        random,
        breaker,
        classify: judging.classify,
        lanes,
        conditions(call) {
          const nowMs = clock.now()
          const { calls, dispatcher } = queue
          if (call === undefined) {
            const slotsInUse = slots.pressure(calls.length)
            return { queueWaitMs: calls.oldestWaitMs(nowMs), slotsInUse }
          }
          const { lane, unfinished } = call
          // Calls that wait for limits of another lane do not prevent this retry. Calls that wait for limits of
          // this lane count by their wait (`maxQueueWaitMs`), and do not count as slots in use.
          return {
            queueWaitMs: dispatcher.oldestWaitMs(nowMs, lane),
            slotsInUse: slots.pressure(dispatcher.waitingForPod(nowMs), lane, unfinished),
          }
        },
      }),
  },
  {
    stage: 'hedge',
    option: 'hedge',
    scope: 'local',
    per: 'call',
    codes: [],
    shadow: false,
    create({ guard, options: { hedge }, clock, queue, slots, breaker, limits, ...around }) {
      const retry = around.built<RetryStage>('retry')
      if (hedge === undefined || retry === undefined) return undefined
      const enforced = around.shadowed.has('vendor-limit') ? undefined : limits
      const shared = { guard, clock, queue, slots, breaker, retry }
      return new HedgeStage({ ...shared, options: hedge, limits: enforced })
    },
  },
  {
    stage: 'fallback',
    option: 'fallback',
    scope: 'local',
    per: 'call',
    codes: [],
    shadow: false,
    create: ({ guard, options: { fallback }, clock, judging }: StageContext) =>
      fallback && new FallbackStage(guard, fallback, clock, judging),
  },
] as const satisfies readonly StageDefinition[]

/** The table of a guard with custom stages, each at its position. */
export function withCustomStages(
  table: readonly StageDefinition[],
  custom: readonly CustomStage[],
): readonly StageDefinition[] {
  const rows = [...table]
  for (const { name, options } of custom) {
    const place = placeOf(rows, options)
    const queue = rows.findIndex(({ stage }) => stage === 'queue')
    const per = options.per ?? (place <= queue ? 'call' : 'attempt')
    rows.splice(place, 0, {
      stage: name,
      option: 'stages',
      scope: options.scope,
      per,
      codes: ['STAGE_REFUSED'],
      shadow: true,
      after: options.after,
      create: ({ guard }) => new CustomStageRunner(guard, options, per),
    })
  }
  return rows
}

/** Stages that come after the same one keep the order in which they are listed. */
function placeOf(
  rows: readonly StageDefinition[],
  { after, before }: CustomStage['options'],
): number {
  const place = rows.findIndex(({ stage }) => stage === (after ?? before))
  if (after === undefined) return place
  let next = place + 1
  while (rows[next]?.after === after) next++
  return next
}

/** Names of stages before the first release. */
const RENAMED_STAGES: Readonly<Record<string, BuiltInStage>> = { room: 'queue' }

const renamedStage = (old: string) =>
  `there is no stage '${old}' any more; use '${RENAMED_STAGES[old]}'`

/** Reason why a custom stage cannot have this position, or undefined. */
export function positionProblem(
  rows: readonly StageRow[],
  { after, before }: CustomStage['options'],
): string | undefined {
  const named = after ?? before ?? ''
  const call = rows.findIndex(({ stage }) => stage === 'call')
  const place = rows.findIndex(({ stage }) => stage === named)
  if (place >= 0 && (before === undefined ? place < call : place <= call)) return undefined
  if (place >= 0) return `'${named}' does not come before the call`
  const names = rows.slice(0, call).map(({ stage }) => stage)
  if (Object.hasOwn(RENAMED_STAGES, named)) return renamedStage(named)
  const close = suggest(named, names)
  return close === undefined
    ? `there is no stage '${named}'; known: ${names.join(', ')}`
    : `there is no stage '${named}'; did you mean '${close}'?`
}

type Row = (typeof STAGES)[number]

/** A built-in stage that can run in shadow mode. */
export type ShadowStage = Extract<Row, { shadow: true }>['stage']

export const SHADOW_ROWS = STAGES.filter((row): row is Extract<Row, { shadow: true }> => row.shadow)

/** The rows as data, without the functions of their definitions. */
export function rowsOf(table: readonly StageDefinition[]): readonly StageRow[] {
  return table.map(({ stage, option, scope, per, codes, shadow }) => {
    return { stage, option, scope, per, codes, shadow }
  })
}

/** The built-in stages in order, for docs and dashboards. */
export const ORDER = rowsOf(STAGES)
