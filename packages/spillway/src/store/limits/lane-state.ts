/**
 * The shared state of limits: of one lane, and of its guard. Stores keep these two under two keys of one slot and
 * run the transitions on them. Twin: `redis/lua/include/lane-state.lua`.
 *
 * A lane in a pool uses the pool's state in place of its own: transitions get it as `lane`. If the lane also has limits
 * of its own, transitions get the lane's state as `member`, which only counts.
 */
import { SET_BACK_US } from '../clock-setback.js'
import type { LaneRef } from '../lane-port.js'
import type { LimitSpec } from '../limit-spec.js'
import { advance, type Count, emptyCount, lifeUs, rebase } from './counting.js'
import { learnedLifeUs, learnedSpec, rebaseLearned } from './learned-limit.js'
import { noneWaiting, type WaitingList, waitingLifeUs } from './waiting-pods.js'

export interface LaneState extends WaitingList {
  /** The latest time this state was changed. */
  changedUs: number
  pausedUntilUs: number
  /** How often in a row the vendor asked for a pause without a duration. */
  pauseDoublings: number
  /** When the newest permit was granted whose call reported vendor feedback. */
  feedbackUs: number
  counts: Record<string, Count>
}

export interface GuardState extends WaitingList {
  changedUs: number
  /** All lanes are paused until then, by an operator. */
  pausedUntilUs: number
  /** Version of the limits, and the limits if they were changed at run time. */
  version: number
  limits: Record<string, [limit: number, windowUs: number, burst: number, slices: number]>
  /** Temporary limits. */
  overrides: Record<string, [limit: number, untilUs: number, setUs?: number]>
  /** Of limits that span all lanes. */
  counts: Record<string, Count>
}

export function emptyLane(): LaneState {
  const state = { changedUs: 0, pausedUntilUs: 0, pauseDoublings: 0, feedbackUs: 0, counts: {} }
  return { ...state, ...noneWaiting() }
}

export function emptyGuard(): GuardState {
  const state = {
    changedUs: 0,
    pausedUntilUs: 0,
    version: 0,
    limits: {},
    overrides: {},
    counts: {},
  }
  return { ...state, ...noneWaiting() }
}

/** A limit in force, with its count. */
export interface CountedLimit {
  spec: LimitSpec
  count: Count
}

/** The states brought to the present. */
export interface Present {
  now: number
  member: LaneState | undefined
  entries: CountedLimit[]
  /** Something changed that has to be saved even if nothing is granted. */
  changed: boolean
}

export function present(
  lane: LaneState,
  guard: GuardState,
  specs: readonly LimitSpec[],
  version: number,
  serverUs: number,
  member?: LaneState,
): Present {
  const latestUs = Math.max(lane.changedUs, guard.changedUs, member?.changedUs ?? 0)
  const setBack = latestUs - serverUs > SET_BACK_US
  if (setBack) {
    rebaseLane(lane, serverUs)
    rebaseGuard(guard, serverUs)
    if (member !== undefined) rebaseLane(member, serverUs)
  }
  const now = setBack ? serverUs : Math.max(serverUs, latestUs)
  const newest = Math.max(guard.version, version)
  let changed = setBack
  const entries: CountedLimit[] = []
  for (const each of specs) {
    let spec = specInForce(each, guard, version, now)
    const counts = homeOf(each, lane, guard, member).counts
    counts[each.id] ??= emptyCount()
    const count = counts[each.id] as Count
    if (each.learn === true && count.learned !== undefined) {
      const { steppedUs } = count.learned
      const setUs = guard.overrides[each.id]?.[2] ?? 0
      spec = learnedSpec(spec, count, { now, version: newest, setUs })
      if (count.learned?.steppedUs !== steppedUs) changed = true
    }
    if (advance(spec, count, now, newest)) changed = true
    entries.push({ spec, count })
  }
  return { now, member, entries, changed }
}

/** The state that counts a limit. */
function homeOf(
  { span }: LimitSpec,
  lane: LaneState,
  guard: GuardState,
  member: LaneState | undefined,
): LaneState | GuardState {
  if (span === 'vendor') return guard
  return span === 'lane' && member !== undefined ? member : lane
}

/** A lane in a pool that has limits of its own, which its own state counts. */
export function hasMember({ pool, limits }: Pick<LaneRef, 'pool' | 'limits'>): boolean {
  return pool !== undefined && limits.some(({ span }) => span === 'lane')
}

function rebaseLane(lane: LaneState, serverUs: number): void {
  const backUs = lane.changedUs - serverUs
  if (backUs <= 0) return
  rebaseCounts(lane.counts, backUs)
  lane.pausedUntilUs = Math.max(0, lane.pausedUntilUs - backUs)
  lane.feedbackUs = 0
  Object.assign(lane, noneWaiting())
  lane.changedUs = serverUs
}

function rebaseGuard(guard: GuardState, serverUs: number): void {
  const backUs = guard.changedUs - serverUs
  if (backUs <= 0) return
  rebaseCounts(guard.counts, backUs)
  for (const override of Object.values(guard.overrides)) override[1] -= backUs
  guard.pausedUntilUs = Math.max(0, guard.pausedUntilUs - backUs)
  Object.assign(guard, noneWaiting())
  guard.changedUs = serverUs
}

function rebaseCounts(counts: Readonly<Record<string, Count>>, backUs: number): void {
  for (const count of Object.values(counts)) {
    rebase(count, backUs)
    rebaseLearned(count, backUs)
  }
}

/** When the lane's pause ends; in the past if it is not paused. */
export function pausedUntilUs(lane: LaneState, guard: GuardState): number {
  return Math.max(lane.pausedUntilUs, guard.pausedUntilUs)
}

/** Pods wait in the lane or its pool; those that wait for vendor-wide limits wait in the guard. */
export function waitingListOf(
  lane: LaneState,
  guard: GuardState,
  entries: readonly CountedLimit[],
): WaitingList {
  return spansVendor(entries) ? guard : lane
}

export function spansVendor(entries: readonly CountedLimit[]): boolean {
  return entries.some(({ spec }) => spec.span === 'vendor')
}

/** The newest configuration is used; an override replaces its limit while it lasts. */
export function specInForce(
  spec: LimitSpec,
  guard: GuardState,
  version: number,
  now: number,
): LimitSpec {
  const base = guard.version > version ? specStored(spec, guard) : spec
  const override = guard.overrides[spec.id]
  return override !== undefined && override[1] > now ? { ...base, limit: override[0] } : base
}

export function specStored(spec: LimitSpec, guard: GuardState): LimitSpec {
  const stored = guard.limits[spec.id]
  if (stored === undefined) return spec
  const [limit, windowUs, burst, slices] = stored
  return { ...spec, limit, windowUs, burst, slices }
}

/** How long until the first override of these limits ends: the limit may be higher then. */
export function overrideEndsInUs(
  guard: GuardState,
  entries: readonly CountedLimit[],
  now: number,
): number {
  let soonest = Number.POSITIVE_INFINITY
  for (const { spec } of entries) {
    const override = guard.overrides[spec.id]
    if (override !== undefined && override[1] > now) soonest = Math.min(soonest, override[1] - now)
  }
  return soonest
}

/** Keys live longer than their content counts, so that clock differences do not matter. */
const MARGIN_US = 1_000_000
/** Changed limits outlive their counts: pods that start later have to learn them. */
const CHANGED_LIMITS_LIFE_US = 86_400_000_000

export function laneLifeUs(lane: LaneState, now: number): number {
  const life = Math.max(lane.pausedUntilUs - now, longestLifeUs(lane.counts, now))
  return Math.max(life, waitingLifeUs(lane, now)) + MARGIN_US
}

export function guardLifeUs(guard: GuardState, now: number): number {
  let life = Math.max(guard.pausedUntilUs - now, guard.version > 0 ? CHANGED_LIMITS_LIFE_US : 0)
  for (const override of Object.values(guard.overrides)) life = Math.max(life, override[1] - now)
  life = Math.max(life, waitingLifeUs(guard, now))
  return Math.max(life, longestLifeUs(guard.counts, now)) + MARGIN_US
}

/** Of all counts: another release of the fleet may have limits that this one does not have. */
function longestLifeUs(counts: Readonly<Record<string, Count>>, now: number): number {
  let life = 0
  // Not `Object.values`: this runs for every call of a guard.
  for (const id in counts) {
    const count = counts[id] as Count
    life = Math.max(life, lifeUs(count, now))
    if (count.learned !== undefined) life = Math.max(life, learnedLifeUs(count, now))
  }
  return life
}
