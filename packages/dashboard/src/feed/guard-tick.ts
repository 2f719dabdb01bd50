/** Data of one guard for the page, every second. */

import type { GuardSnapshot } from 'spillway'
import type { LaneFlow } from 'spillway/internal'
import {
  ALL_LANES,
  DEFAULT_LANE,
  keyStatesOf,
  limitLabel,
  toSpec,
  tripCause,
} from 'spillway/internal'
import type { BreakerSnapshot } from 'spillway/shared'
import { inOrder, rounded, shown, shownLane } from '../shown.js'
import type { BreakerTick, GuardTick, KeyTick, LaneTick, LimitTick } from '../wire/guards.js'
import type { GuardSample, GuardWatch } from './guard-watch.js'
import type { LaneFigureBook } from './lane-figures.js'

const MOST_LANES = 100
const MOST_KEYS = 50

export interface TickSources {
  at: number
  nowMs: number
  figures: LaneFigureBook
}

export function guardTick(watch: GuardWatch, sample: GuardSample, sources: TickSources): GuardTick {
  const { snapshot, flow, fallbacks, latency, queueWait } = sample
  const { queue, active, limit, shed, retries, hedges, store, closed } = snapshot
  const { parts } = watch.guard
  const budget = parts.options.retry?.budget ?? 0
  return {
    name: shown(snapshot.name),
    flow,
    queue: {
      waiting: queue.waiting,
      size: queue.size,
      oldestMs: rounded(queue.oldestMs),
      byPriority: inOrder(queue.byPriority),
      codel: parts.queue.calls.standing,
    },
    slots: { active, ...(Number.isFinite(limit) && { limit }) },
    ...(shed !== undefined && { shed: shedTick(shed) }),
    ...(retries !== undefined && {
      retry: {
        ratio: rounded(retries.retries / Math.max(1, retries.requests)),
        budget,
        allowed: retries.allowedRetries,
      },
    }),
    ...(hedges !== undefined && { hedges: { made: hedges.made, won: hedges.won } }),
    ...(latency !== undefined && { latency }),
    ...(queueWait !== undefined && { queueWait }),
    fallbacks,
    lanes: laneTicks(watch, snapshot, sources),
    ...estimateTicks(snapshot),
    ...keyTicks(watch),
    store: store?.status ?? 'memory',
    closed,
  }
}

function estimateTicks({ estimates }: GuardSnapshot): Pick<GuardTick, 'estimates'> {
  if (estimates.length === 0) return {}
  const ticks = estimates.map(({ unit, calls, recentRatio, ranges }) => ({
    unit: shown(unit),
    calls,
    ratio: rounded(recentRatio),
    near: rounded(ranges['0.8 to 1.25'] / calls),
  }))
  return { estimates: ticks }
}

function keyTicks({ guard }: GuardWatch): Pick<GuardTick, 'keys'> {
  const states = keyStatesOf(guard).slice(0, MOST_KEYS)
  if (states.length === 0) return {}
  const keys = states.map(
    ({ key, state, reason, untilMs }): KeyTick => ({
      key: shown(key),
      state,
      ...(reason !== undefined && { reason }),
      ...(untilMs !== undefined && { untilMs: Math.round(untilMs) }),
    }),
  )
  return { keys }
}

function shedTick(shed: NonNullable<GuardSnapshot['shed']>): NonNullable<GuardTick['shed']> {
  const { pressure, highest, overload, signals } = shed
  const rates = Object.entries(signals).map(([name, value]) => [name, rounded(value)])
  return {
    pressure: rounded(pressure),
    ...(highest !== undefined && { by: highest }),
    overload: rounded(overload),
    signals: Object.fromEntries(rates),
  }
}

/** The default lane first, then the busiest ones. */
function laneTicks(watch: GuardWatch, snapshot: GuardSnapshot, sources: TickSources): LaneTick[] {
  const flows = watch.recorder.takeFlows()
  const breakers = new Map(snapshot.breakers.map((each) => [each.lane, each]))
  const limited = sources.figures.lanesOf(watch.guard)
  const names = new Set([...snapshot.lanes, ...breakers.keys(), ...flows.keys(), ...limited])
  const calls = (lane: string) => flows.get(lane)?.calls ?? 0
  const order = (one: string, other: string) =>
    Number(other === DEFAULT_LANE) - Number(one === DEFAULT_LANE) || calls(other) - calls(one)
  const lanes = [...names].sort(order).slice(0, MOST_LANES)
  const adaptive = new Map(snapshot.laneLimits.map((each) => [each.lane, each]))
  return lanes.map((lane): LaneTick => {
    const breaker = breakers.get(lane)
    const own = adaptive.get(lane)
    const paused = pausedMs(watch, lane, sources)
    return {
      lane: shownLane(lane),
      flow: flowOf(flows.get(lane)),
      waiting: watch.guard.parts.queue.calls.lengthOf(lane),
      ...(own !== undefined && { adaptive: { limit: own.limit, active: own.active } }),
      ...(breaker !== undefined && { breaker: breakerTick(watch, breaker, sources.at) }),
      limits: lane === ALL_LANES ? [] : limitTicks(watch, lane, sources),
      ...(paused > 0 && { pausedMs: rounded(paused) }),
    }
  })
}

function flowOf(flow: LaneFlow | undefined): NonNullable<LaneTick['flow']> {
  return flow ?? { calls: 0, refused: [] }
}

function breakerTick(watch: GuardWatch, breaker: BreakerSnapshot, at: number): BreakerTick {
  const { lane, state, untilMs, calls, failures, slow, consecutiveFailures } = breaker
  const { probes, successes, selfIsolated, ageMs } = breaker
  const policy = watch.guard.parts.options.breaker
  const hasOpened = (state === 'open' || state === 'half-open') && policy !== undefined
  const counts = { calls, failures, slow, consecutive: consecutiveFailures, openings: 0 }
  return {
    state,
    ...(hasOpened && { cause: tripCause(counts, toSpec(policy)) }),
    ...(untilMs !== undefined && { untilMs: rounded(Math.max(0, untilMs)) }),
    calls,
    failures,
    slow,
    consecutiveFailures,
    probes,
    successes,
    selfIsolated,
    ageMs: Math.round(ageMs),
    timeline: watch.timelineOf(shownLane(lane), at),
  }
}

function limitTicks(watch: GuardWatch, lane: string, { nowMs, figures }: TickSources): LimitTick[] {
  const { limits, options } = watch.guard.parts
  if (limits === undefined || options.limits === undefined) return []
  const known = figures.of(watch.guard, lane)
  if (limits.alone) return sharesOf(limits.sharesOf(lane), nowMs - (known?.atMs ?? nowMs))
  if (known === undefined) return []
  const usual = limits.settings.configured
  const ageMs = nowMs - known.atMs
  return known.figures.limits.map((figures): LimitTick => {
    const { id, limit, configured, used, remaining, nextFreeMs } = figures
    const usually = usual.get(id)
    return {
      id: shown(id),
      label: shown(limitLabel(id)),
      limit,
      used,
      remaining,
      nextFreeMs: rounded(Math.max(0, nextFreeMs - ageMs)),
      ageMs: Math.round(ageMs),
      scope: 'shared',
      ...(configured > limit && { configured }),
      ...(usually !== undefined && usually !== configured && { usual: usually }),
    }
  })
}

/**
 * While the store is unreachable each pod has its own share. The use of the other shares is
 * unknown.
 */
function sharesOf(shares: Record<string, number>, ageMs: number): LimitTick[] {
  return Object.entries(shares).map(([id, limit]) => ({
    id: shown(id),
    label: shown(limitLabel(id)),
    limit,
    ageMs: Math.round(ageMs),
    scope: 'local',
  }))
}

/** According to this pod or the store, whichever is longer. */
function pausedMs(watch: GuardWatch, lane: string, { nowMs, figures }: TickSources): number {
  const here = watch.guard.parts.queue.dispatcher.blocks.pausedMs(lane, nowMs)
  const known = figures.of(watch.guard, lane)
  if (known === undefined) return here
  return Math.max(here, known.figures.pausedMs - (nowMs - known.atMs))
}
