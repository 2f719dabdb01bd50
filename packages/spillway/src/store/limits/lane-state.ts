/**
 * What is shared about limits: of one lane, and of the guard it belongs to. Stores keep these two
 * under two keys of one slot, and run the transitions in `transitions.ts` on them. Twin:
 * `redis/lua/include/lane-state.lua`.
 */

import { SET_BACK_US } from '../clock-setback.js'
import type { LimitSpec } from '../limit-spec.js'
import { advance, type Count, emptyCount, lifeUs, rebase } from './counting.js'

export interface LaneState {
  /** The latest time this state was changed at. */
  t: number
  /** Paused until then. */
  p: number
  /** How often in a row the vendor said "slow down" without saying for how long. */
  g: number
  /** The newest permit a vendor's answer told us about. */
  f: number
  counts: Record<string, Count>
}

export interface GuardState {
  t: number
  /** All lanes are paused until then, by hand. */
  p: number
  /** Version of the limits, and the limits if they were changed while running. */
  v: number
  limits: Record<string, [limit: number, windowUs: number, burst: number, slices: number]>
  /** Limits for a while. */
  overrides: Record<string, [limit: number, untilUs: number]>
  counts: Record<string, Count>
}

export function emptyLane(): LaneState {
  return { t: 0, p: 0, g: 0, f: 0, counts: {} }
}

export function emptyGuard(): GuardState {
  return { t: 0, p: 0, v: 0, limits: {}, overrides: {}, counts: {} }
}

/** One limit, as it is in force, with its count. */
export interface Entry {
  spec: LimitSpec
  count: Count
}

/** Both states brought to the present. */
export interface Present {
  now: number
  entries: Entry[]
  /** Something changed that has to be kept even if nothing is granted. */
  changed: boolean
}

export function present(
  lane: LaneState,
  guard: GuardState,
  specs: readonly LimitSpec[],
  version: number,
  serverUs: number,
): Present {
  const setBack = Math.max(lane.t, guard.t) - serverUs > SET_BACK_US
  if (setBack) {
    rebaseLane(lane, serverUs)
    rebaseGuard(guard, serverUs)
  }
  const now = Math.max(serverUs, lane.t, guard.t)
  let changed = setBack
  const entries: Entry[] = []
  for (const each of specs) {
    const spec = specInForce(each, guard, version, now)
    const counts = each.span === 'vendor' ? guard.counts : lane.counts
    counts[each.id] ??= emptyCount()
    const count = counts[each.id] as Count
    if (advance(spec, count, now, Math.max(guard.v, version))) changed = true
    entries.push({ spec, count })
  }
  return { now, entries, changed }
}

function rebaseLane(lane: LaneState, serverUs: number): void {
  const backUs = lane.t - serverUs
  if (backUs <= 0) return
  for (const count of Object.values(lane.counts)) rebase(count, backUs)
  lane.p = Math.max(0, lane.p - backUs)
  lane.f = 0
  lane.t = serverUs
}

function rebaseGuard(guard: GuardState, serverUs: number): void {
  const backUs = guard.t - serverUs
  if (backUs <= 0) return
  for (const count of Object.values(guard.counts)) rebase(count, backUs)
  for (const override of Object.values(guard.overrides)) override[1] -= backUs
  guard.p = Math.max(0, guard.p - backUs)
  guard.t = serverUs
}

/** Until when nobody gets anything on this lane; in the past, if it is not paused. */
export function pausedUntilUs(lane: LaneState, guard: GuardState): number {
  return Math.max(lane.p, guard.p)
}

/** The newest configuration wins; an override wins over it while it lasts. */
function specInForce(spec: LimitSpec, guard: GuardState, version: number, now: number): LimitSpec {
  const base = guard.v > version ? specStored(spec, guard) : spec
  const override = guard.overrides[spec.id]
  return override !== undefined && override[1] > now ? { ...base, limit: override[0] } : base
}

export function specStored(spec: LimitSpec, guard: GuardState): LimitSpec {
  const stored = guard.limits[spec.id]
  if (stored === undefined) return spec
  const [limit, windowUs, burst, slices] = stored
  return { ...spec, limit, windowUs, burst, slices }
}

/** A margin over what still counts, for clocks and for whoever looks at a key that has just ended. */
const MARGIN_US = 1_000_000
/** Changed limits outlive their counts: pods that start later have to hear of them. */
const CHANGED_LIMITS_LIFE_US = 86_400_000_000

export function laneLifeUs(lane: LaneState, now: number): number {
  return Math.max(lane.p - now, longestLifeUs(lane.counts, now)) + MARGIN_US
}

export function guardLifeUs(guard: GuardState, now: number): number {
  let life = Math.max(guard.p - now, guard.v > 0 ? CHANGED_LIMITS_LIFE_US : 0)
  for (const override of Object.values(guard.overrides)) life = Math.max(life, override[1] - now)
  return Math.max(life, longestLifeUs(guard.counts, now)) + MARGIN_US
}

/** Of all that is counted: another release of the fleet may have limits that this one has not. */
function longestLifeUs(counts: Readonly<Record<string, Count>>, now: number): number {
  let life = 0
  // Not `Object.values`: this runs for every call of a guard.
  for (const id in counts) life = Math.max(life, lifeUs(counts[id] as Count, now))
  return life
}
