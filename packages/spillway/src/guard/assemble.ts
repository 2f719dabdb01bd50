/** Puts a guard together: from its options, everything its calls have in common. */

import { LinkedList } from '../core/collections/linked-list.js'
import { definedOf } from '../core/options/omit-undefined.js'
import { isResponse, type OutcomeOptions } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { Shedder } from '../local/load-shedder/shedder.js'
import { tokenBucket } from '../local/rate-limiter/token-bucket.js'
import { createRetryBudget, type RetryBudget } from '../local/retry/retry-budget.js'
import type { RetryPolicy } from '../local/retry/retry-call.js'
import type { TimedCall } from '../local/timeout/timed-call.js'
import {
  createDeadlineTimeout,
  createLocalTimeout,
  type LocalTimeout,
} from '../local/timeout/timeout.js'
import { FleetBreaker } from '../shared/circuit-breaker/fleet-breaker.js'
import { isPermit } from '../shared/circuit-breaker/quorum-lane.js'
import { LaneRegistry } from '../shared/lanes/lane-registry.js'
import type { StoreWatch } from '../shared/outage/store-watch.js'
import { watchOver } from '../shared/outage/watch-over.js'
import { CallQueue } from '../shared/permit-queue/call-queue.js'
import { PermitDispatcher } from '../shared/permit-queue/permit-dispatcher.js'
import { LimitClient } from '../shared/rate-limiter/limit-client.js'
import { createLevels } from '../shared/user-limits/levels.js'
import { LevelsAlone } from '../shared/user-limits/outage-levels.js'
import { UserCharges } from '../shared/user-limits/user-charges.js'
import type { Store } from '../store/port.js'
import { AttemptMeter } from './attempt-meter.js'
import type { ClosingSign } from './closing.js'
import { Hedger } from './hedger.js'
import { LaneLimits } from './lane-limits.js'
import { LaneThrottles } from './lane-throttles.js'
import type { Machinery } from './machinery.js'
import type { CheckedGuard } from './options.js'
import { SHADOW_ROWS, type ShadowStage } from './order.js'
import { CallResumer } from './queue/resume.js'
import { busyError, limitedError, shortageOf, storeError } from './refusals.js'
import { Shadow, shadowSlotsOf } from './shadow.js'
import { LimitStage, UserStage } from './shared-stages.js'
import { Slots } from './slots.js'
import { bodyLimits } from './stream/body-limits.js'
import { Tally } from './tally.js'
import type { GuardTracer } from './trace.js'

export interface GuardSurroundings {
  store: Store
  /** The store is in this process and goes by the same clock. */
  sameClock: boolean
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  random: Random
  /** How many pods there are, as long as nobody has said. */
  expectedPods: number
  tracer: GuardTracer | undefined
  /**
   * Of the guard of the same name that this one takes the place of. What is known of the store, of the
   * downstream and of this pod's own part goes on; what only concerns this pod begins anew.
   */
  before?: Machinery | undefined
}

const DEFAULT_UNREAD_MS = 60_000

/** `onFree` is told when a slot has come free. */
export function assemble(
  name: string,
  options: CheckedGuard,
  around: GuardSurroundings,
  closing: ClosingSign,
  onFree: () => void,
): Machinery {
  const { clock, random } = around
  const { queue, pace, concurrency } = options
  const queueMs = queue?.timeoutMs ?? Number.POSITIVE_INFINITY
  const room = new CallQueue({
    clock,
    size: queue?.size ?? 0,
    timeoutMs: queueMs,
    targetMs: queue?.targetMs ?? Math.max(1, queueMs / 10),
    agingMs: queue?.agingMs ?? Math.max(1, queueMs / 2),
  })
  const lanes = createLanes(name, options, around)
  const laneLimits = createLaneLimits(name, options, clock, lanes)
  const stages = shadowStages(options)
  const bucket = pace && tokenBucket(pace.limit, pace.windowMs, pace.burst ?? pace.limit)
  const most = stages?.has('concurrency') ? undefined : concurrency?.limit
  const slots = new Slots(
    () => most ?? Number.POSITIVE_INFINITY,
    stages?.has('pace') ? undefined : bucket,
    laneLimits,
    lanes,
  )
  const throttles = options.throttle && new LaneThrottles(name, options.throttle, random, lanes)
  const watch = createWatch(name, options, around)
  const counted = createLimits(name, options, around, watch, lanes, () => machinery)
  const limits = stages?.has('vendor-limit') ? undefined : counted
  const levelsAlone = createLevelsAlone(name, options, around, watch)
  const users = createUsers(name, options, around, levelsAlone)
  const timeout = createTimeout(name, options, clock)
  // Last, because it begins to listen at once: nothing that complains comes after it.
  const breaker = createBreaker(
    name,
    options,
    around,
    watch,
    lanes,
    stages?.has('breaker') === true,
  )
  const dispatcher = new PermitDispatcher({
    clock,
    queue: room,
    capacity: slots,
    lanes,
    breaker: breaker && {
      isClear: (lane) => breaker.isClear(lane),
      enter: (lane) => breaker.enter(lane),
      exit: (permit, outcome) => breaker.exit(permit, outcome),
      isPermit,
    },
    limits,
    sameClock: around.sameClock,
    mayWait: queue !== undefined,
    limitedError: ({ lane, paused, left }, retryAfterMs, price) =>
      limitedError({
        name,
        lane,
        retryAfterMs,
        paused,
        alone: limits?.alone === true,
        shortage: limits && shortageOf(limits.book.limits, limits.costsOf(price.cost), left),
      }),
    busyError: (stage) => busyError(name, stage, slots, clock.now()),
    storeError: (cause) => storeError(name, cause),
  })
  const budget = createBudget(options, clock, () => machinery)
  const judging = judgingOf(name, options)
  const policy = (retry: NonNullable<CheckedGuard['retry']>): RetryPolicy => ({
    ...retry,
    name,
    budget,
    classify: judging.classify,
    clock,
    random,
    usualMs: 0,
    closing,
  })
  const retriedHeader = options.fetch?.hops?.retried
  const retry = options.retry && {
    ...policy(options.retry),
    ...(retriedHeader !== undefined && {
      retriedBelow: (value: unknown) => isResponse(value) && value.headers.has(retriedHeader),
    }),
  }
  const tally = around.before?.tally ?? new Tally()
  const machinery: Machinery = {
    name,
    store: around.store,
    sameClock: around.sameClock,
    clock,
    options,
    lanes,
    room,
    slots,
    starter: new CallResumer(),
    dispatcher,
    breaker,
    limits,
    counted,
    shadow:
      stages &&
      new Shadow({
        name,
        stages,
        tally,
        breaker,
        limits: limits === undefined ? counted : undefined,
        slots,
        shadowSlots: shadowSlotsOf(stages, concurrency?.limit, bucket),
      }),
    users,
    levelsAlone,
    watch,
    timeout,
    bodies: bodyLimits(timeout, options.timeout?.unreadMs ?? DEFAULT_UNREAD_MS),
    retry,
    budget,
    shedder: options.shed && new Shedder(name, options.shed, clock, random),
    throttles,
    hedger: options.hedge && new Hedger(name, options.hedge, budget as RetryBudget, clock),
    meter: (laneLimits ?? throttles) && new AttemptMeter(clock, laneLimits, throttles),
    once: policy(ONCE),
    judging,
    tally,
    running: new LinkedList<TimedCall<unknown>>(),
    overdue: new Set(),
    tracer: around.tracer,
    timings: around.before?.timings,
    decisions: undefined,
    closed: false,
    onFree,
  }
  return machinery
}

/** Nothing, if all are in force. */
function shadowStages({ shadow, breaker }: CheckedGuard): ReadonlySet<ShadowStage> | undefined {
  const all = shadow === true ? SHADOW_ROWS.map(({ stage }) => stage) : (shadow ?? [])
  const stages = new Set<ShadowStage>(all)
  if (breaker?.shadow === true) stages.add('breaker')
  return stages.size === 0 ? undefined : stages
}

function createBreaker(
  name: string,
  options: CheckedGuard,
  around: GuardSurroundings,
  watch: StoreWatch | undefined,
  lanes: LaneRegistry,
  shadow: boolean,
): FleetBreaker | undefined {
  if (options.breaker === undefined) return undefined
  const { store, pod, clock, before } = around
  const policy = { ...options.breaker, shadow }
  const known = before?.breaker
  if (known?.goesBy(policy) === true) return known.share()
  const breaker = new FleetBreaker({
    name,
    store,
    pod,
    clock,
    policy,
    timeoutMs: options.timeout?.callMs ?? options.timeout?.firstByteMs,
    watch,
    lanes,
  })
  if (known !== undefined) breaker.learnFrom(known)
  return breaker
}

function createLimits(
  name: string,
  options: CheckedGuard,
  around: GuardSurroundings,
  watch: StoreWatch | undefined,
  lanes: LaneRegistry,
  machinery: () => Machinery,
): LimitStage | undefined {
  if (options.limits === undefined) return undefined
  const { store, pod, clock } = around
  const { limits, jitterMs, basePauseMs, maxPauseMs } = options
  const book = new LimitClient({
    name,
    store: store.limits,
    pod,
    clock,
    limits,
    jitterMs,
    basePauseMs,
    maxPauseMs,
    lanes,
    watch,
    before: around.before?.counted?.book,
    onGivenBack: (lane) => machinery().dispatcher.unblock(lane),
    onLimitsChanged: () => machinery().dispatcher.unblockAll(),
  })
  return new LimitStage({
    book,
    remote: store.remote,
    onPause: (lane, pauseMs) => {
      // In shadow nobody pauses.
      if (machinery().limits === undefined) return
      const untilMs = clock.now() + Math.min(pauseMs, maxPauseMs)
      machinery().dispatcher.pauseUntil(lane, untilMs)
    },
    ride: (lane) => machinery().breaker?.ride(lane),
  })
}

/** No retry while the room backs up or all slots are in use; calls ask their lane's breaker. */
function createBudget(
  { retry, hedge }: CheckedGuard,
  clock: Clock,
  machinery: () => Machinery,
): RetryBudget | undefined {
  if (retry === undefined && hedge === undefined) return undefined
  return createRetryBudget({
    ...(retry !== undefined && { ratio: retry.budget }),
    // A hedge counts as a first retry; how often a call is tried its policy knows.
    retries: Math.max((retry?.attempts ?? 1) - 1, hedge === undefined ? 0 : 1),
    clock,
    conditions: () => {
      const { room, slots } = machinery()
      return {
        queueWaitMs: room.oldestWaitMs(clock.now()),
        slotsInUse: Math.max(slots.active / slots.limit, slots.lanes?.used ?? 0),
      }
    },
  })
}

const ONCE: NonNullable<CheckedGuard['retry']> = {
  attempts: 1,
  budget: 0,
  backoff: 'constant',
  baseMs: 1,
  maxMs: 1,
  jitter: 'none',
  maxRetryAfterMs: 0,
  where: 'anywhere',
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
  { clock, before }: GuardSurroundings,
): LaneRegistry {
  const named = hedge?.lane === undefined ? [] : [hedge.lane]
  if (before === undefined) return new LaneRegistry({ name, clock, maxLanes, named })
  before.lanes.configure(maxLanes, named)
  return before.lanes
}

function createLaneLimits(
  name: string,
  { concurrency }: CheckedGuard,
  clock: Clock,
  lanes: LaneRegistry,
): LaneLimits | undefined {
  if (concurrency?.adaptive === undefined) return undefined
  return new LaneLimits(name, { ...concurrency, adaptive: concurrency.adaptive }, clock, lanes)
}

function createUsers(
  name: string,
  { userLimits }: CheckedGuard,
  { store }: GuardSurroundings,
  alone: LevelsAlone | undefined,
): UserStage | undefined {
  if (userLimits === undefined) return undefined
  return new UserStage(name, new UserCharges(store, createLevels(userLimits, name), alone))
}

function createLevelsAlone(
  name: string,
  { userLimits }: CheckedGuard,
  { clock, random, before }: GuardSurroundings,
  watch: StoreWatch | undefined,
): LevelsAlone | undefined {
  if (userLimits === undefined || watch === undefined) return undefined
  return before?.levelsAlone ?? new LevelsAlone(name, watch, clock, random)
}

function createWatch(
  name: string,
  { limits, breaker, userLimits }: CheckedGuard,
  { store, before, tracer: _, ...around }: GuardSurroundings,
): StoreWatch | undefined {
  const shares = (limits ?? breaker ?? userLimits) !== undefined
  if (!shares) return undefined
  return before?.watch?.share() ?? watchOver(store, { name, ...around })
}

function createTimeout(name: string, { timeout }: CheckedGuard, clock: Clock): LocalTimeout {
  const { callMs, firstByteMs, idleMs, adaptive } = timeout ?? {}
  if ((callMs ?? firstByteMs ?? idleMs) === undefined) return createDeadlineTimeout(name, clock)
  return createLocalTimeout({
    name,
    clock,
    ...(callMs !== undefined && { callMs }),
    ...(firstByteMs !== undefined && { firstByteMs }),
    ...(idleMs !== undefined && { idleMs }),
    ...(adaptive !== undefined && { adaptive: definedOf(adaptive) }),
  })
}
