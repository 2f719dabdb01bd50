/** What a guard says of itself. */
import type { Priority } from '../core/options/priority.js'
import type { ShedderSnapshot } from '../local/load-shedder/shedder.js'
import type { RetryBudget } from '../local/retry/retry-budget.js'
import type { BreakerSnapshot } from '../shared/circuit-breaker/api.js'
import type { OutageRule } from '../shared/outage/rules.js'
import type { StoreSnapshot } from '../shared/outage/store-status.js'
import type { FallbackCount } from './fallback.js'
import { MOST_LANES } from './fleet.js'
import type { HedgeCounts } from './hedger.js'
import type { LaneLimitSnapshot } from './lane-limits.js'
import type { LaneThrottles } from './lane-throttles.js'
import type { Machinery } from './machinery.js'
import type { TallySnapshot } from './tally.js'

export interface GuardSnapshot extends TallySnapshot {
  name: string
  /** The waiting room. */
  room: { waiting: number; size: number; oldestMs: number; byPriority: Record<Priority, number> }
  /** Calls that run, and how many may; infinite without `concurrency`. */
  active: number
  limit: number
  /** Those that were used recently, 100 at most. */
  lanes: string[]
  /** One for each lane that was used. */
  breakers: BreakerSnapshot[]
  /** The load shedder's signals; nothing without `shed`. */
  shed: ShedderSnapshot | undefined
  /** One for each lane that was used, with `concurrency.adaptive`. */
  laneLimits: LaneLimitSnapshot[]
  /** The same with `throttle`. */
  throttles: ReturnType<LaneThrottles['snapshots']>
  /** Second attempts; nothing without `hedge`. */
  hedges: HedgeCounts | undefined
  /** Retries made in the last seconds, and the calls they are a fraction of. */
  retries: ReturnType<RetryBudget['snapshot']> | undefined
  /** How the store stands for this guard; nothing, where there is none but memory. */
  store: GuardStoreSnapshot | undefined
  /** How often each fallback stood in. */
  fallbacks: FallbackCount[]
  closed: boolean
}

export interface GuardStoreSnapshot extends StoreSnapshot {
  /** What goes while the store is away: of each limit, of the breaker, of each level of user limits. */
  rules: {
    limits: Record<string, OutageRule>
    breaker: OutageRule | undefined
    userLimits: Record<string, OutageRule>
  }
  /** They are in force: for limits, for breaker and user limits. */
  inForce: { limits: boolean; breaker: boolean }
  /** This pod's part of each limit. */
  shares: Record<string, number>
}

/** How a guard stands, for whoever asks. */
export function snapshotOf(machinery: Machinery, fallbacks: FallbackCount[]): GuardSnapshot {
  const { room, slots, breaker, tally, clock, options, closed, dispatcher } = machinery
  const { shedder, throttles, hedger, budget } = machinery
  const waiting = room.length === 0 ? 0 : dispatcher.crowd(clock.now())
  return {
    name: machinery.name,
    ...tally.snapshot(),
    room: {
      waiting: room.length,
      size: options.queue?.size ?? 0,
      oldestMs: room.oldestWaitMs(clock.now()),
      byPriority: room.lengthsByPriority(),
    },
    active: slots.active,
    limit: Math.min(slots.limit, slots.lanes?.total ?? slots.limit),
    lanes: machinery.lanes.names().slice(0, MOST_LANES),
    breakers: breaker?.snapshots() ?? [],
    shed: shedder?.snapshot(waiting, slots.active),
    laneLimits: slots.lanes?.snapshots() ?? [],
    throttles: throttles?.snapshots(clock.now()) ?? [],
    hedges: hedger?.counts(),
    retries: budget?.snapshot(),
    store: storeOf(machinery),
    fallbacks,
    closed,
  }
}

function storeOf({ watch, options, counted: limits }: Machinery): GuardStoreSnapshot | undefined {
  if (watch === undefined) return undefined
  const ofLimits = options.limits?.map(({ unit, outage }) => [unit, outage]) ?? []
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
