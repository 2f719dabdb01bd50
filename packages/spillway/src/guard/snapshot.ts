/** The state of a guard, read from its stages. */
import type { Scope, Stage } from '../core/errors.js'
import type { Priority } from '../core/options/priority.js'
import type { ShedderSnapshot } from '../local/load-shedder/shedder.js'
import type { RetryBudget } from '../local/retry/retry-budget.js'
import type { BreakerSnapshot } from '../shared/circuit-breaker/api.js'
import type { OutageRule } from '../shared/outage/rules.js'
import type { StoreSnapshot, StoreStatus } from '../shared/outage/store-status.js'
import type { EstimateSnapshot } from '../shared/rate-limiter/estimate-counts.js'
import type { GuardParts } from './build-guard.js'
import { MOST_LANES } from './fleet/fleet-report.js'
import type { JobQueueSnapshot } from './jobs/queue-snapshot.js'
import type { CheckedGuard } from './options.js'
import type { CallCounts } from './pipeline/counters.js'
import type { FallbackCount } from './stages/fallback.js'
import type { HedgeCounts } from './stages/hedge.js'
import type { LaneLimitSnapshot } from './stages/lane-concurrency.js'
import type { LaneThrottleSnapshot } from './stages/throttle.js'

/** How the guards of this pod reach their store. */
export interface SpillwayHealth {
  /** `degraded`: outage rules decide in some guard. Requests are still served. */
  status: 'ok' | 'degraded'
  /** State of the store by guard; `memory` with a memory store. */
  guards: Record<string, StoreStatus | 'memory'>
  /** Problems, as sentences. */
  problems: string[]
}

/** State of all guards and job queues of this pod. */
export interface SpillwaySnapshot {
  /** Identifies the pod. */
  pod: string
  /** How the guards reach their store. */
  health: SpillwayHealth
  /** Pods alive at the last heartbeat, this one included. */
  livePods: number
  /** State of each guard. */
  guards: GuardSnapshot[]
  /** Counters of this pod for job queues. */
  jobQueues: JobQueueSnapshot[]
  /** The pod is closing or closed. */
  draining: boolean
}

/** State and counts of a guard in this pod. */
export interface GuardSnapshot extends CallCounts {
  /** Name of the guard. */
  name: string
  /** The queue. */
  queue: {
    /** Calls that wait. */
    waiting: number
    /** Calls that may wait. */
    size: number
    /** Milliseconds that the oldest call has waited, whatever it waits for. 0 if none waits. */
    oldestMs: number
    /** Waiting calls by priority. */
    byPriority: Record<Priority, number>
  }
  /** Calls that run. */
  active: number
  /** Calls that may run at once in this pod; infinite without `concurrency`. */
  limit: number
  /** Lanes that were used recently, 100 at most. */
  lanes: string[]
  /** One for each lane that was used. */
  breakers: BreakerSnapshot[]
  /** The load shedder's signals; undefined without `shed`. */
  shed: ShedderSnapshot | undefined
  /** One for each lane that was used, with `concurrency.adaptive`. */
  laneLimits: LaneLimitSnapshot[]
  /** One for each lane that was used, with `throttle`. */
  throttles: LaneThrottleSnapshot[]
  /** Second attempts; undefined without `hedge`. */
  hedges: HedgeCounts | undefined
  /** Retries made in the last seconds, and the calls they are a fraction of. */
  retries: ReturnType<RetryBudget['snapshot']> | undefined
  /** Reserved against actual costs of this pod's calls, for each unit of the limits other than `requests`. */
  estimates: EstimateSnapshot[]
  /** State of the store for this guard; undefined with a memory store. */
  store: GuardStoreSnapshot | undefined
  /** The stages that are on, in order. */
  stages: StageSnapshot[]
  /** How often each fallback answered. */
  fallbacks: FallbackCount[]
  /** Whether the guard is closed. */
  closed: boolean
}

/** State and counts of one stage. */
export interface StageSnapshot {
  /** Name of the stage. */
  name: Stage
  /** Whether its state is local or shared. */
  scope: Scope
  /** Whether it counts calls or attempts. */
  per: 'call' | 'attempt'
  /** In shadow mode: the stage reports refusals without enforcing them. */
  shadow: boolean
  /** It was added by the application. */
  custom: boolean
  /** The snapshot of a custom stage. */
  state: unknown
}

/** The store as a guard sees it. */
export interface GuardStoreSnapshot extends StoreSnapshot {
  /** Outage rules in force: of each limit, of the breaker, of each level of user limits. */
  rules: {
    /** Outage rules of the limits. */
    limits: Record<string, OutageRule>
    /** Outage rule of the breaker. */
    breaker: OutageRule | undefined
    /** Outage rules of the user limits. */
    userLimits: Record<string, OutageRule>
  }
  /** Whether the outage rules are in force. */
  inForce: {
    /** The outage rules of the limits apply now. */
    limits: boolean
    /** The outage rules of the breaker and the user limits apply now. */
    breaker: boolean
  }
  /** This pod's part of each limit. */
  shares: Record<string, number>
}

export function snapshotOf(parts: GuardParts): GuardSnapshot {
  const { name, queue, slots, breaker, counters, clock, options, pipeline, lanes } = parts
  const { shed, throttle, hedge, retry, fallback } = parts.stages
  const { calls } = queue
  const nowMs = clock.now()
  return {
    name,
    ...counters.snapshot(),
    queue: {
      waiting: calls.length,
      size: options.queue?.size ?? 0,
      oldestMs: calls.oldestWaitMs(nowMs),
      byPriority: calls.lengthsByPriority(),
    },
    active: slots.active,
    limit: Math.min(slots.limit, slots.lanes?.total ?? slots.limit),
    lanes: lanes.names().slice(0, MOST_LANES),
    breakers: breaker?.snapshots() ?? [],
    shed: shed?.pressureAt(nowMs),
    laneLimits: slots.lanes?.snapshots() ?? [],
    throttles: throttle?.snapshots(nowMs) ?? [],
    hedges: hedge?.counts(),
    retries: retry.budget?.snapshot(),
    estimates: parts.countedLimits?.estimates.snapshot() ?? [],
    store: storeOf(parts),
    stages: stageSnapshots(parts),
    fallbacks: fallback?.counts() ?? [],
    closed: pipeline.closed,
  }
}

function stageSnapshots({
  rows,
  pipeline,
  options,
  shadowed,
}: Pick<GuardParts, 'rows' | 'pipeline' | 'options' | 'shadowed'>): StageSnapshot[] {
  return rows
    .filter(({ stage, option }) => stage === 'call' || isOn(options, option))
    .map(({ stage: name, scope, per, option }) => ({
      name,
      scope,
      per,
      shadow: shadowed.has(name),
      custom: option === 'stages',
      state: pipeline.stages.find((stage) => stage.name === name)?.snapshot?.(),
    }))
}

/** Whether the guard has this option. */
export function isOn(options: CheckedGuard, option: string): boolean {
  return (options as Record<string, unknown>)[option] !== undefined
}

function storeOf({
  watch,
  options,
  countedLimits: limits,
}: Pick<GuardParts, 'watch' | 'options' | 'countedLimits'>): GuardStoreSnapshot | undefined {
  if (watch === undefined) return undefined
  const ofLimits = limits?.settings.outageRules ?? []
  const ofLevels = options.userLimits?.map(({ per, outage }) => [per, outage]) ?? []
  return {
    ...watch.snapshot(),
    rules: {
      limits: Object.fromEntries(ofLimits),
      breaker: options.breaker?.outage,
      userLimits: Object.fromEntries(ofLevels),
    },
    inForce: {
      limits: limits?.alone === true && watch.status !== 'starting',
      breaker: !watch.reachable,
    },
    shares: limits?.shares ?? {},
  }
}
