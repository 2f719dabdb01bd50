/** The transitions of a breaker. Twins: `redis/lua/{report-outcomes,take-probes,…}.lua`. */

import { type BreakerSpec, FAILURE, NOTHING, SLOW } from '../breaker-spec.js'
import type {
  BreakerCommand,
  BreakerReport,
  BreakerView,
  ProbeReply,
  ProbeRequest,
  SyncRequest,
} from '../port.js'
import {
  type BreakerState,
  breakerLifeUs,
  CLOSED,
  close,
  freeProbes,
  HALF_OPEN,
  move,
  open,
  present,
  show,
  viewOf,
} from './breaker-state.js'
import { count, isRepeated, setHung, setInFlight } from './tally.js'
import { isTripped } from './trip-conditions.js'

/** The reply of a transition, how long its state has to be kept, and what to publish. */
export interface BreakerKept<T> {
  reply: T
  /** Absent if the state did not change; it then expires when it would have. */
  lifeUs?: number
  /** The view to publish, if something changed that other pods should see. */
  published?: BreakerView
}

export function kept<T>(
  state: BreakerState,
  spec: BreakerSpec,
  now: number,
  versionBefore: number,
  reply: (view: BreakerView) => T,
): BreakerKept<T> {
  const view = viewOf(state, now)
  return {
    reply: reply(view),
    lifeUs: breakerLifeUs(state, spec, now),
    ...(state.version !== versionBefore && { published: view }),
  }
}

/** `live`: the number of pods. */
export function reportOutcomes(
  state: BreakerState,
  request: BreakerReport,
  serverUs: number,
  live: number,
): BreakerKept<BreakerView> {
  const { spec } = request
  const before = state.version
  const now = present(state, spec, serverUs)
  for (const [probe, kind] of request.probes) endProbe(state, spec, probe, kind, now)
  // The pod knows a later generation from before the store lost its state.
  if (state.kind === CLOSED && state.generation < request.generation) {
    state.generation = request.generation
  }
  const isCurrent = () => state.kind === CLOSED && state.generation === request.generation
  const [inFlight, forUs] = request.inFlight ?? [0, 0]
  // When a call ended, those further on in this report were still in flight.
  let later = 0
  for (const [kind, times] of request.outcomes) later += isRepeated(kind) ? 0 : times
  if (isCurrent()) {
    setInFlight(state.tally, request.pod, inFlight, later, forUs, now)
    setHung(state.tally, request.pod, request.hung, forUs, now)
  }
  for (const outcome of request.outcomes) {
    if (!isCurrent()) break
    if (!isRepeated(outcome[0])) later -= outcome[1]
    setInFlight(state.tally, request.pod, inFlight, later, forUs, now)
    count(state.tally, spec, request.pod, outcome, now)
    if (isTripped(state.tally, spec, live, now)) open(state, spec, now)
  }
  // Without outcomes, too: the calls in flight that kept it closed may count no longer.
  if (isCurrent() && isTripped(state.tally, spec, live, now)) open(state, spec, now)
  return kept(state, spec, now, before, (view) => view)
}

function endProbe(
  state: BreakerState,
  spec: BreakerSpec,
  probe: string,
  kind: number,
  now: number,
): void {
  state.lateProbes.delete(probe)
  // Its lease has ended, or the other probes have decided already.
  if (!state.probes.delete(probe)) return
  if (kind === NOTHING) return
  if (kind === FAILURE || (kind === SLOW && spec.slowRate > 0)) {
    state.failedProbes++
    if (probesFail(state, spec)) open(state, spec, now)
    return
  }
  state.successes++
  if (state.successes >= spec.successes) close(state, now)
}

/** A breaker that needs more than one success does not open again because of one failed probe. */
const DECIDING_FAILURES = 2
/** Above this share of failed probes a breaker opens again, independent of its `failureRate`. */
const HIGHEST_PROBE_RATE = 0.5

function probesFail({ successes, failedProbes }: BreakerState, spec: BreakerSpec): boolean {
  if (failedProbes < Math.min(DECIDING_FAILURES, spec.successes)) return false
  const rate = Math.min(spec.failureRate || HIGHEST_PROBE_RATE, HIGHEST_PROBE_RATE)
  return failedProbes / (successes + failedProbes) >= rate
}

export function takeProbes(
  state: BreakerState,
  request: ProbeRequest,
  serverUs: number,
): BreakerKept<ProbeReply> {
  const { spec } = request
  const before = state.version
  const now = present(state, spec, serverUs)
  let granted = 0
  if (state.kind === HALF_OPEN && state.isolations.size === 0) {
    granted = Math.min(freeProbes(state, spec), request.probes.length)
    for (const probe of request.probes.slice(0, granted)) {
      state.probes.set(probe, now + spec.probeLeaseUs)
    }
  }
  return kept(state, spec, now, before, (view) => ({ granted, view }))
}

/**
 * Renews the leases of running probes and returns the state. Reading does not extend the life of a
 * closed breaker; it does extend that of any other.
 */
export function syncBreaker(
  state: BreakerState,
  request: SyncRequest,
  serverUs: number,
): BreakerKept<BreakerView> {
  const { spec } = request
  const { version: before, timeUs: lastUs } = state
  const now = present(state, spec, serverUs)
  for (const probes of [state.probes, state.lateProbes]) {
    for (const probe of request.renew) {
      if (probes.has(probe)) probes.set(probe, now + spec.probeLeaseUs)
    }
  }
  if (state.kind === CLOSED && state.version === before && now >= lastUs) {
    return { reply: viewOf(state, now) }
  }
  return kept(state, spec, now, before, (view) => view)
}

function trip(
  state: BreakerState,
  spec: BreakerSpec,
  { forUs, generation }: Extract<BreakerCommand['command'], { kind: 'trip' }>,
  now: number,
): void {
  const isFound = generation !== undefined
  // The pod knows a later generation from before the store lost its state.
  const isCurrent =
    generation === state.generation ||
    (state.kind === CLOSED && state.generation < Number(generation))
  if (isFound && !isCurrent) return
  const isRepeated = isFound && state.kind === HALF_OPEN
  open(state, spec, now)
  if (forUs === undefined) return
  const untilUs = now + forUs
  state.openUntilUs = isRepeated ? Math.max(state.openUntilUs, untilUs) : untilUs
}

export function commandBreaker(
  state: BreakerState,
  request: BreakerCommand,
  serverUs: number,
): BreakerKept<BreakerView> {
  const { spec, command } = request
  const before = state.version
  const now = present(state, spec, serverUs)
  switch (command.kind) {
    case 'isolate':
      state.isolations.set(command.holder, now + command.forUs)
      show(state, now)
      break
    case 'release':
      if (command.holder === undefined) state.isolations.clear()
      else state.isolations.delete(command.holder)
      show(state, now)
      break
    case 'trip':
      trip(state, spec, command, now)
      break
    case 'reset':
      state.openings = 0
      state.closedAtUs = 0
      move(state, CLOSED, now)
  }
  return kept(state, spec, now, before, (view) => view)
}
