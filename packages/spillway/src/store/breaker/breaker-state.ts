/**
 * The shared state of a breaker, and how it is brought to the present: open times, leases, isolations
 * and windows end by themselves. Twin: `redis/lua/include/breaker-state.lua`.
 */

import type { BreakerSpec } from '../breaker-spec.js'
import { SET_BACK_US } from '../clock-setback.js'
import type { BreakerView } from '../port.js'
import { advance, emptyTally, type Tally, totals } from './tally.js'

export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

export interface BreakerState {
  /** The latest time at which this state was changed. */
  timeUs: number
  /** Grows with every change that other pods should see. */
  version: number
  /** Grows with every transition. Reports of another generation change nothing. */
  generation: number
  kind: typeof CLOSED | typeof OPEN | typeof HALF_OPEN
  openUntilUs: number
  /** For how long it was opened, the last time. */
  openForUs: number
  /** The number of times it opened again without having closed. */
  openings: number
  /** When it last closed after having been open; 0 if unknown. */
  closedAtUs: number
  /** Probes of this half-open phase that succeeded and that failed. */
  successes: number
  failedProbes: number
  /** Running probes: when their leases end. */
  probes: Map<string, number>
  /** Running probes of an earlier phase: they still load the downstream, and count as nothing. */
  lateProbes: Map<string, number>
  /** Manual isolations: by holder, when they end. */
  isolations: Map<string, number>
  tally: Tally
}

/** How many probes may start now, in the whole fleet. */
export function freeProbes({ probes, lateProbes }: BreakerState, spec: BreakerSpec): number {
  return Math.max(0, spec.probes - probes.size - lateProbes.size)
}

export function emptyBreaker(): BreakerState {
  return {
    timeUs: 0,
    version: 0,
    generation: 0,
    kind: CLOSED,
    openUntilUs: 0,
    openForUs: 0,
    openings: 0,
    closedAtUs: 0,
    successes: 0,
    failedProbes: 0,
    probes: new Map(),
    lateProbes: new Map(),
    isolations: new Map(),
    tally: emptyTally(),
  }
}

/** Brings the state to the present, and returns the present time. */
export function present(state: BreakerState, spec: BreakerSpec, serverUs: number): number {
  if (state.timeUs - serverUs > SET_BACK_US) rebaseBreaker(state, serverUs)
  const now = Math.max(serverUs, state.timeUs)
  state.timeUs = now
  if (expire(state.isolations, now)) show(state, now)
  if (state.kind === OPEN && state.openUntilUs <= now) move(state, HALF_OPEN, now)
  expire(state.probes, now)
  expire(state.lateProbes, now)
  if (state.kind === CLOSED) advance(state.tally, spec, now)
  return now
}

/** The clock was set back: end times keep their distance from now, and the window starts empty. */
function rebaseBreaker(state: BreakerState, serverUs: number): void {
  const backUs = state.timeUs - serverUs
  state.openUntilUs -= backUs
  state.closedAtUs = Math.max(0, state.closedAtUs - backUs)
  for (const ends of [state.probes, state.lateProbes, state.isolations]) {
    for (const [key, untilUs] of ends) ends.set(key, untilUs - backUs)
  }
  state.tally = emptyTally()
  state.timeUs = serverUs
}

function expire(ends: Map<string, number>, now: number): boolean {
  let expired = false
  for (const [key, untilUs] of ends) {
    if (untilUs > now) continue
    ends.delete(key)
    expired = true
  }
  return expired
}

/** Marks a change that other pods should see. Versions are times, so they grow even after a loss of state. */
export function show(state: BreakerState, now: number): void {
  state.version = Math.max(now, state.version + 1)
}

/** Every transition begins a generation. The counts stay visible until it closes again. */
export function move(state: BreakerState, kind: BreakerState['kind'], now: number): void {
  state.kind = kind
  state.generation = Math.max(now, state.generation + 1)
  state.successes = 0
  state.failedProbes = 0
  for (const [probe, untilUs] of state.probes) state.lateProbes.set(probe, untilUs)
  state.probes = new Map()
  if (kind === CLOSED) state.tally = emptyTally()
  show(state, now)
}

/** Opens the breaker. If it is already open, it stays open for another `openForUs`. */
export function open(state: BreakerState, spec: BreakerSpec, now: number): void {
  if (state.kind === CLOSED) {
    state.openings = 0
    state.openForUs = spec.openUs
  } else if (state.kind === HALF_OPEN) {
    state.openings++
    const longerUs = Math.max(spec.openUs, Math.ceil(state.openForUs * spec.openFactor))
    state.openForUs = Math.min(spec.maxOpenUs, longerUs)
  }
  state.openUntilUs = now + state.openForUs
  move(state, OPEN, now)
}

export function close(state: BreakerState, now: number): void {
  state.openings = 0
  state.closedAtUs = now
  move(state, CLOSED, now)
}

export function viewOf(state: BreakerState, now: number): BreakerView {
  const { calls, failures, slow, inFlight, consecutive } = totals(state.tally)
  return {
    nowUs: now,
    version: state.version,
    generation: state.generation,
    kind: state.kind,
    untilUs: state.kind === OPEN ? state.openUntilUs : 0,
    closedAtUs: state.closedAtUs,
    openings: state.openings,
    probes: state.probes.size + state.lateProbes.size,
    successes: state.successes,
    failedProbes: state.failedProbes,
    isolatedUntilUs: latest(state.isolations),
    calls,
    failures,
    slow,
    inFlight,
    consecutive,
  }
}

function latest(ends: Map<string, number>): number {
  let untilUs = 0
  for (const each of ends.values()) untilUs = Math.max(untilUs, each)
  return untilUs
}

const MARGIN_US = 1_000_000
/** After this time without calls, an old state is outdated. */
const LONGEST_LIFE_US = 300_000_000
/** A half-open breaker waits at least this long for its first probe. */
const UNPROBED_US = 60_000_000

export function breakerLifeUs(state: BreakerState, spec: BreakerSpec, now: number): number {
  const isolatedUs = latest(state.isolations) - now
  return Math.max(relevantUs(state, spec, now), isolatedUs) + MARGIN_US
}

function relevantUs(state: BreakerState, spec: BreakerSpec, now: number): number {
  if (state.kind === CLOSED) {
    // A generation has to be known as long as calls of an earlier one may be in flight.
    return Math.max(
      spec.windowUs,
      spec.windowUs > 0 && state.generation === 0 ? 0 : LONGEST_LIFE_US,
    )
  }
  const openUs = state.kind === OPEN ? state.openUntilUs - now : 0
  const brokenUs = openUs + Math.max(spec.openUs, spec.probeLeaseUs, UNPROBED_US)
  return Math.min(brokenUs, Math.max(LONGEST_LIFE_US, 2 * openUs))
}
