/**
 * What is shared about a breaker, and how it is brought to the present: open time ends, leases and
 * isolations expire, windows move on, without anybody having to call. Twin:
 * `redis/lua/include/breaker-state.lua`.
 */

import type { BreakerSpec } from '../breaker-spec.js'
import type { BreakerView } from '../port.js'
import { SET_BACK_US } from '../set-back.js'
import { advance, emptyTally, type Tally, totals } from './tally.js'

export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

export interface BreakerState {
  /** The latest time this state was changed at. */
  t: number
  /** Version: grows with every change that others should see. */
  v: number
  /** Generation: grows with every transition. What belongs to another one changes nothing. */
  g: number
  kind: typeof CLOSED | typeof OPEN | typeof HALF_OPEN
  /** Open until then. */
  u: number
  /** How long it was opened for, the last time. */
  d: number
  /** How often it opened again without having closed. */
  o: number
  /** When it last closed, having been open. */
  c: number
  /** Probes that succeeded. */
  w: number
  /** Probes under way: when their leases end. */
  probes: Map<string, number>
  /** Those that outlived their round: they still hold a place at the downstream, and count nothing. */
  late: Map<string, number>
  /** Isolated by hand: by whom, until when. */
  holds: Map<string, number>
  tally: Tally
}

export function emptyBreaker(): BreakerState {
  return {
    t: 0,
    v: 0,
    g: 0,
    kind: CLOSED,
    u: 0,
    d: 0,
    o: 0,
    c: 0,
    w: 0,
    probes: new Map(),
    late: new Map(),
    holds: new Map(),
    tally: emptyTally(),
  }
}

/** Brings the state to the present, and answers with what time that is. */
export function present(state: BreakerState, spec: BreakerSpec, serverUs: number): number {
  if (state.t - serverUs > SET_BACK_US) rebaseBreaker(state, serverUs)
  const now = Math.max(serverUs, state.t)
  state.t = now
  if (expire(state.holds, now)) show(state, now)
  if (state.kind === OPEN && state.u <= now) move(state, HALF_OPEN, now)
  expire(state.probes, now)
  expire(state.late, now)
  if (state.kind === CLOSED) advance(state.tally, spec, now)
  return now
}

/** The clock was set back: what ends later ends as much later as before; of windows nothing is known. */
function rebaseBreaker(state: BreakerState, serverUs: number): void {
  const backUs = state.t - serverUs
  state.u -= backUs
  // Zero means that nobody remembers.
  state.c = Math.max(0, state.c - backUs)
  for (const ends of [state.probes, state.late, state.holds]) {
    for (const [key, untilUs] of ends) ends.set(key, untilUs - backUs)
  }
  state.tally = emptyTally()
  state.t = serverUs
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

/** Others should see this change. Times as versions: they grow even where the state was lost. */
export function show(state: BreakerState, now: number): void {
  state.v = Math.max(now, state.v + 1)
}

/**
 * Every transition begins a generation. What was counted stays in view until it closes again: it is
 * why it opened.
 */
export function move(state: BreakerState, kind: BreakerState['kind'], now: number): void {
  state.kind = kind
  state.g = Math.max(now, state.g + 1)
  state.w = 0
  for (const [probe, untilUs] of state.probes) state.late.set(probe, untilUs)
  state.probes = new Map()
  if (kind === CLOSED) state.tally = emptyTally()
  show(state, now)
}

/** Opened by hand while it is open, it stays open as long again. */
export function open(state: BreakerState, spec: BreakerSpec, now: number): void {
  if (state.kind === CLOSED) {
    state.o = 0
    state.d = spec.openUs
  } else if (state.kind === HALF_OPEN) {
    state.o++
    const longerUs = Math.max(spec.openUs, Math.ceil(state.d * spec.openFactor))
    state.d = Math.min(spec.maxOpenUs, longerUs)
  }
  state.u = now + state.d
  move(state, OPEN, now)
}

export function close(state: BreakerState, now: number): void {
  state.o = 0
  state.c = now
  move(state, CLOSED, now)
}

export function viewOf(state: BreakerState, now: number): BreakerView {
  const [calls, failures, slow, consecutive] = totals(state.tally)
  return {
    nowUs: now,
    version: state.v,
    generation: state.g,
    kind: state.kind,
    untilUs: state.kind === OPEN ? state.u : 0,
    closedAtUs: state.c,
    openings: state.o,
    probes: state.probes.size + state.late.size,
    successes: state.w,
    isolatedUntilUs: latest(state.holds),
    calls,
    failures,
    slow,
    consecutive,
  }
}

function latest(ends: Map<string, number>): number {
  let untilUs = 0
  for (const each of ends.values()) untilUs = Math.max(untilUs, each)
  return untilUs
}

const MARGIN_US = 1_000_000
/** Nobody calls any more: after this long nobody knows whether the downstream is still broken. */
const LONGEST_LIFE_US = 300_000_000
/** A half-open breaker waits at least so long for somebody who probes. */
const UNPROBED_US = 60_000_000

export function breakerLifeUs(state: BreakerState, spec: BreakerSpec, now: number): number {
  const byHandUs = latest(state.holds) - now
  return Math.max(meansSomethingUs(state, spec, now), byHandUs) + MARGIN_US
}

function meansSomethingUs(state: BreakerState, spec: BreakerSpec, now: number): number {
  if (state.kind === CLOSED) {
    // As long as calls of an earlier generation may be under way, it has to be known as earlier.
    return Math.max(spec.windowUs, spec.windowUs > 0 && state.g === 0 ? 0 : LONGEST_LIFE_US)
  }
  const openUs = state.kind === OPEN ? state.u - now : 0
  const brokenUs = openUs + Math.max(spec.openUs, spec.probeLeaseUs, UNPROBED_US)
  return Math.min(brokenUs, Math.max(LONGEST_LIFE_US, 2 * openUs))
}
