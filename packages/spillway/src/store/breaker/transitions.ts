/** What can happen to a breaker. Twins: `redis/lua/{report-outcomes,take-probes,…}.lua`. */

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
  HALF_OPEN,
  move,
  open,
  present,
  show,
  viewOf,
} from './breaker-state.js'
import { count, isTripped } from './tally.js'

/** A transition's answer, how long the state has to be kept, and whether others should hear of it. */
export interface BreakerKept<T> {
  reply: T
  /** Nothing, if there is nothing to keep: the state is as it was, and ends when it would have. */
  lifeUs?: number
  /** The view to publish, if something changed that others should see. */
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
    ...(state.v !== versionBefore && { published: view }),
  }
}

/** `live`: how many pods there are. */
export function reportOutcomes(
  state: BreakerState,
  request: BreakerReport,
  serverUs: number,
  live: number,
): BreakerKept<BreakerView> {
  const { spec } = request
  const before = state.v
  const now = present(state, spec, serverUs)
  for (const [probe, kind] of request.probes) endProbe(state, spec, probe, kind, now)
  // A pod that knows of a later generation saw it before the state was lost.
  if (state.kind === CLOSED && state.g < request.generation) state.g = request.generation
  for (const [kind, times] of request.outcomes) {
    if (state.kind !== CLOSED || state.g !== request.generation) break
    count(state.tally, spec, request.pod, kind, times, now)
    if (isTripped(state.tally, spec, live)) open(state, spec, now)
  }
  return kept(state, spec, now, before, (view) => view)
}

function endProbe(
  state: BreakerState,
  spec: BreakerSpec,
  probe: string,
  kind: number,
  now: number,
): void {
  state.late.delete(probe)
  // Its lease has ended, or another probe has decided already.
  if (!state.probes.delete(probe)) return
  if (kind === NOTHING) return
  if (kind === FAILURE || (kind === SLOW && spec.slowRate > 0)) return open(state, spec, now)
  state.w++
  if (state.w >= spec.successes) close(state, now)
}

export function takeProbes(
  state: BreakerState,
  request: ProbeRequest,
  serverUs: number,
): BreakerKept<ProbeReply> {
  const { spec } = request
  const before = state.v
  const now = present(state, spec, serverUs)
  let granted = 0
  if (state.kind === HALF_OPEN && state.holds.size === 0) {
    const free = spec.probes - state.probes.size - state.late.size
    granted = Math.max(0, Math.min(free, request.probes.length))
    for (const probe of request.probes.slice(0, granted)) {
      state.probes.set(probe, now + spec.probeLeaseUs)
    }
  }
  return kept(state, spec, now, before, (view) => ({ granted, view }))
}

/**
 * Renews the leases of probes that are still under way, and tells how things are. A closed breaker has
 * none, and is not kept alive by being looked at; one that is not closed is.
 */
export function syncBreaker(
  state: BreakerState,
  request: SyncRequest,
  serverUs: number,
): BreakerKept<BreakerView> {
  const { spec } = request
  const { v: before, t: lastUs } = state
  const now = present(state, spec, serverUs)
  for (const probes of [state.probes, state.late]) {
    for (const probe of request.renew) {
      if (probes.has(probe)) probes.set(probe, now + spec.probeLeaseUs)
    }
  }
  if (state.kind === CLOSED && state.v === before && now >= lastUs) {
    return { reply: viewOf(state, now) }
  }
  return kept(state, spec, now, before, (view) => view)
}

export function commandBreaker(
  state: BreakerState,
  request: BreakerCommand,
  serverUs: number,
): BreakerKept<BreakerView> {
  const { spec, command } = request
  const before = state.v
  const now = present(state, spec, serverUs)
  switch (command.kind) {
    case 'isolate':
      state.holds.set(command.holder, now + command.forUs)
      show(state, now)
      break
    case 'release':
      if (command.holder === undefined) state.holds.clear()
      else state.holds.delete(command.holder)
      show(state, now)
      break
    case 'trip':
      open(state, spec, now)
      if (command.forUs !== undefined) state.u = now + command.forUs
      break
    case 'reset':
      state.o = 0
      state.c = 0
      move(state, CLOSED, now)
  }
  return kept(state, spec, now, before, (view) => view)
}
