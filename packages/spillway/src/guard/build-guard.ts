/** Builds a guard: creates what its stages need from the options, and the stages from the table. */
import { LinkedList } from '../core/collections/linked-list.js'
import type { BuiltInStage, Stage as StageName } from '../core/errors.js'
import type { OutcomeOptions } from '../core/outcome.js'
import type { Clock } from '../core/time/clock.js'
import { DrainTime } from '../local/drain-time.js'
import { tokenBucket } from '../local/rate-limiter/token-bucket.js'
import { ShedWait } from '../local/shed-wait.js'
import type { TimedCall } from '../local/timeout/timed-call.js'
import type { BreakerLanes } from '../shared/circuit-breaker/breaker-lanes.js'
import { LaneRegistry } from '../shared/lanes/lane-registry.js'
import { CallQueue } from '../shared/permit-queue/call-queue.js'
import { PermitDispatcher } from '../shared/permit-queue/permit-dispatcher.js'
import type { LimitClient } from '../shared/rate-limiter/limit-client.js'
import { UserCharges } from '../shared/user-limits/charges.js'
import { createLevels } from '../shared/user-limits/levels.js'
import type { Store } from '../store/port.js'
import type { CheckedGuard } from './options.js'
import type { AttemptDependencies } from './pipeline/attempt.js'
import type { CallDependencies } from './pipeline/call.js'
import { CallCounters, CallObservers } from './pipeline/counters.js'
import { Pipeline } from './pipeline/pipeline.js'
import type { Stage } from './pipeline/stage.js'
import {
  SHADOW_ROWS,
  STAGES,
  type StageContext,
  type StageDefinition,
  type StageRow,
  withCustomStages,
} from './pipeline/stages.js'
import type { GuardTracer } from './pipeline/trace.js'
import {
  createBreaker,
  createLimits,
  createOutageLevels,
  createWatch,
  type GuardEnvironment,
  type SharedParts,
} from './shared-parts.js'
import type { BreakerStage } from './stages/breaker.js'
import { ConcurrencyStage } from './stages/concurrency.js'
import type { FallbackStage } from './stages/fallback.js'
import type { HedgeStage } from './stages/hedge.js'
import { LaneConcurrency } from './stages/lane-concurrency.js'
import { PaceStage } from './stages/pace.js'
import { QueueStage } from './stages/queue.js'
import { concurrencyError, limitedError, paceError, storeError } from './stages/refusal-errors.js'
import type { RetryStage } from './stages/retry.js'
import { inShadow } from './stages/shadow.js'
import type { ShedStage } from './stages/shed.js'
import type { ThrottleStage } from './stages/throttle.js'
import type { TimeoutStage } from './stages/timeout.js'
import type { UserLimitStage } from './stages/user-limit.js'

/** The parts of a guard. */
export interface GuardParts extends SharedParts {
  readonly name: string
  readonly options: CheckedGuard
  readonly clock: Clock
  readonly store: Store
  readonly tracer: GuardTracer | undefined
  readonly lanes: LaneRegistry
  readonly slots: ConcurrencyStage
  readonly queue: QueueStage
  readonly pipeline: Pipeline
  readonly calls: CallDependencies
  readonly counters: CallCounters
  readonly observers: CallObservers
  readonly running: LinkedList<TimedCall<unknown>>
  /** Limits that are enforced. */
  readonly limits: LimitClient | undefined
  readonly stages: BuiltStages
  /** The rows of this guard's stage table, custom stages included. */
  readonly rows: readonly StageRow[]
  /** Stages in shadow mode. */
  readonly shadowed: ReadonlySet<StageName>
}

/** Stages that the guard itself uses. */
export interface BuiltStages {
  readonly shed: ShedStage | undefined
  readonly userLimit: UserLimitStage | undefined
  readonly throttle: ThrottleStage | undefined
  readonly retry: RetryStage
  readonly hedge: HedgeStage | undefined
  readonly fallback: FallbackStage | undefined
}

/**
 * `before`: the guard of this name that the new one replaces. Its lanes, shared state, counters and timings are kept;
 * other local state starts empty.
 */
export function buildGuard(
  name: string,
  options: CheckedGuard,
  environment: GuardEnvironment,
  before: GuardParts | undefined,
  table: readonly StageDefinition[] = STAGES,
): GuardParts {
  const { clock, random, store, sameClock, tracer } = environment
  const shadowed = shadowedStages(options)
  const lanes = createLanes(name, options, clock, before)
  const waiting = createQueue(options, clock)
  const drainTime = new DrainTime(random)
  const pace = createPace(name, options, waiting, shadowed, () => slots.active)
  const slots = new ConcurrencyStage({
    guard: name,
    clock,
    limit: options.concurrency?.limit,
    shadow: shadowed.has('concurrency'),
    graceMs: options.concurrency?.graceMs ?? 0,
    laneLimits: createLaneLimits(name, options, clock, lanes),
    registry: lanes,
    pace: shadowed.has('pace') ? undefined : pace,
    calls: waiting,
    mayWait: options.queue !== undefined,
    drainTime,
  })
  const queue = new QueueStage({
    guard: name,
    size: options.queue?.size,
    calls: waiting,
    slots,
    clock,
    targetMs: targetOf(options),
    drainTime,
    shedWait: new ShedWait(random),
  })
  const watch = createWatch(name, options, environment, before)
  const countedLimits = createLimits(name, options, environment, watch, lanes, before, {
    dispatcher: () => dispatcher,
    breaker: () => breaker,
  })
  const limits = shadowed.has('vendor-limit') ? undefined : countedLimits
  const outageLevels = createOutageLevels(name, options, environment, watch, before)
  const charges =
    options.userLimits &&
    new UserCharges(store, createLevels(options.userLimits, name), outageLevels)
  // After everything that can fail, because it subscribes to the store at once.
  const breaker = createBreaker(name, options, environment, watch, lanes, before, shadowed)
  const dispatcher = createDispatcher(
    name,
    { clock, queue: waiting, capacity: slots, lanes, breaker, limits },
    options,
    sameClock,
  )
  queue.dispatcher = dispatcher
  const counters = before?.counters ?? new CallCounters()
  const judging = judgingOf(name, options)
  const built = new Map<StageName, Stage>()
  const context: StageContext = {
    guard: name,
    options,
    clock,
    random,
    judging,
    lanes,
    slots,
    queue,
    sameClock,
    charges,
    breaker,
    limits: countedLimits,
    pace,
    shadowed,
    built: <S extends Stage>(stage: BuiltInStage) => built.get(stage) as S | undefined,
  }
  const reporter = { guard: name, count: counters.wouldRefuse.bind(counters) }
  const rows = withCustomStages(table, options.stages ?? [])
  const pipelineStages = rows.flatMap(({ stage, create }): Stage[] => {
    const created = create?.(context)
    if (created === undefined) return []
    built.set(stage, created)
    return [shadowed.has(stage) ? inShadow(created, reporter) : created]
  })
  const pipeline = new Pipeline(name, pipelineStages)
  const stages: BuiltStages = {
    shed: context.built('shed'),
    userLimit: context.built('user-limit'),
    throttle: context.built('throttle'),
    retry: context.built('retry') as RetryStage,
    hedge: context.built('hedge'),
    fallback: context.built('fallback'),
  }
  slots.onFreedLater = () => queue.cancel()
  const observers = new CallObservers()
  observers.timings = before?.observers.timings
  const running = new LinkedList<TimedCall<unknown>>()
  const attempts: AttemptDependencies = {
    guard: name,
    clock,
    lanes,
    pipeline,
    timeout: context.built('timeout') as TimeoutStage,
    breaker: context.built<BreakerStage>('breaker'),
    judging,
    counters,
    observers,
    running,
    nested: true,
    onIdle: undefined,
  }
  const { retry, hedge } = stages
  const shed = stages.shed?.shedder.timesCalls === true ? stages.shed : undefined
  const calls = { clock, lanes, pipeline, queue, retry, hedge, shed }
  return {
    name,
    options,
    clock,
    store,
    tracer,
    lanes,
    slots,
    queue,
    pipeline,
    calls: { ...calls, attempts, counters, observers },
    counters,
    observers,
    running,
    breaker,
    limits,
    countedLimits,
    watch,
    outageLevels,
    stages,
    rows,
    shadowed,
  }
}

/** Stages in shadow mode: they report refusals without enforcing them. */
function shadowedStages({ shadow, stages: custom, breaker }: CheckedGuard): ReadonlySet<StageName> {
  const builtIn = SHADOW_ROWS.map(({ stage }) => stage)
  const every = [...builtIn, ...(custom ?? []).map(({ name }) => name)]
  const stages = new Set<StageName>(shadow === true ? every : shadow)
  if (breaker?.shadow === true) stages.add('breaker')
  return stages
}

/** The delay above which the queue drops calls if it lasts. */
function targetOf({ queue }: CheckedGuard): number {
  return queue?.targetMs ?? Math.max(1, (queue?.timeoutMs ?? Number.POSITIVE_INFINITY) / 10)
}

function createQueue(options: CheckedGuard, clock: Clock): CallQueue {
  const { queue } = options
  const timeoutMs = queue?.timeoutMs ?? Number.POSITIVE_INFINITY
  const targetMs = targetOf(options)
  return new CallQueue({
    clock,
    size: queue?.size ?? 0,
    timeoutMs,
    targetMs,
    intervalMs: queue?.intervalMs ?? targetMs,
    agingMs: queue?.agingMs ?? Math.max(1, timeoutMs / 2),
  })
}

function createDispatcher(
  name: string,
  parts: {
    clock: Clock
    queue: CallQueue
    capacity: ConcurrencyStage
    lanes: LaneRegistry
    breaker: BreakerLanes | undefined
    limits: LimitClient | undefined
  },
  options: CheckedGuard,
  sameClock: boolean,
): PermitDispatcher {
  const { clock, capacity: slots, limits } = parts
  return new PermitDispatcher({
    ...parts,
    limits: limits?.permits,
    sameClock,
    mayWait: options.queue !== undefined,
    limitedError: ({ lane, paused, left }, retryAfterMs, call) =>
      limitedError({
        name,
        lane,
        retryAfterMs,
        paused,
        outageReason: limits?.outageReason,
        queueTimeoutMs: options.queue?.timeoutMs ?? 0,
        limits: limits?.settings.of(lane).limits ?? [],
        pool: limits?.settings.of(lane).pool,
        cost: call.cost,
        costs: limits?.settings.of(lane).costsOf(call) ?? [],
        left,
      }),
    busyError: (stage) =>
      stage === 'pace'
        ? paceError(name, slots.active, slots.paceWaitMs(clock.now()))
        : concurrencyError(name, slots.active, slots.limit, slots.nextFreeMs(clock.now())),
    storeError: (cause) => storeError(name, cause),
  })
}

function judgingOf(name: string, { breaker, classify }: CheckedGuard): OutcomeOptions {
  const slowMs = breaker?.slowMs
  return {
    name,
    ...(slowMs !== undefined && { slowMs }),
    ...(classify !== undefined && { classify }),
  }
}

/** A guard that replaces another one keeps its lanes: calls of both use them, and perhaps one breaker. */
function createLanes(
  name: string,
  { maxLanes, hedge }: CheckedGuard,
  clock: Clock,
  before: GuardParts | undefined,
): LaneRegistry {
  const named = hedge?.lane === undefined ? [] : [hedge.lane]
  if (before === undefined) return new LaneRegistry({ name, clock, maxLanes, named })
  before.lanes.configure(maxLanes, named)
  return before.lanes
}

function createPace(
  guard: string,
  { pace, queue }: CheckedGuard,
  calls: CallQueue,
  shadowed: ReadonlySet<StageName>,
  active: () => number,
): PaceStage | undefined {
  if (pace === undefined) return undefined
  const bucket = tokenBucket(pace.limit, pace.windowMs, pace.burst ?? pace.limit)
  const mayWait = queue !== undefined
  return new PaceStage({
    guard,
    pace,
    bucket,
    calls,
    mayWait,
    shadow: shadowed.has('pace'),
    active,
  })
}

function createLaneLimits(
  name: string,
  { concurrency }: CheckedGuard,
  clock: Clock,
  lanes: LaneRegistry,
): LaneConcurrency | undefined {
  if (concurrency?.adaptive === undefined) return undefined
  return new LaneConcurrency(name, { ...concurrency, adaptive: concurrency.adaptive }, clock, lanes)
}
