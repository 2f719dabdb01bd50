/** Remedies for refused calls: one sentence for each code. */
import type { Details, ErrorCode, Stage } from 'spillway'
import { readableMs } from './shown.js'

interface Refusal {
  stage: Stage
  details: Details
  retryAfterMs: number | undefined
}

const REMEDIES: Record<ErrorCode, (refusal: Refusal) => string> = {
  SHED: ({ stage, details }) => {
    if (stage === 'queue') return 'A shorter queue: its delay stayed above queue.targetMs.'
    const { maxQueue, waiting, maxInFlight, inFlight, pressure, reason } = details
    if (maxInFlight !== undefined)
      return `Fewer than ${maxInFlight} calls in flight; there were ${inFlight}.`
    if (reason === 'deadline') return 'More time before its deadline, or a shorter queue.'
    if (reason === 'tier')
      return `A pressure below the limit of its tier; it was ${part(pressure)}.`
    if (pressure !== undefined)
      return `Less pressure (it was ${part(pressure)}), or a higher priority.`
    if (maxQueue !== undefined)
      return `Fewer than ${maxQueue} waiting calls; there were ${waiting}.`
    return 'The application’s function shed.when returned true; it has to return false.'
  },
  USER_LIMITED: ({ details: { level, limit, windowMs }, retryAfterMs }) =>
    `A retry ${later(retryAfterMs)}, or a limit per ${level} above ${limit} in ${readableMs(windowMs)}.`,
  QUEUE_FULL: ({ stage, details: { size, limit, why } }) => {
    if (why === 'displaced') return 'A higher priority: a call of higher priority evicted it.'
    if (stage === 'concurrency') return `A free slot of the ${limit}, or the option queue.`
    if (stage === 'pace') return 'A retry a moment later, or the option queue.'
    return `A shorter queue than queue.size (${size}), or a higher priority than a queued call.`
  },
  QUEUE_TIMEOUT: ({ details: { waitedMs, active, limit } }) =>
    `A free slot or permit within ${readableMs(waitedMs)}: ${active} of ${slots(limit)} were in use; or a longer queue timeout.`,
  CIRCUIT_OPEN: ({ details: { state }, retryAfterMs }) =>
    state === 'half-open'
      ? 'A closed breaker: probes decide now, and all of them are running.'
      : state === 'isolated'
        ? 'A release: an operator has isolated the downstream.'
        : `A closed breaker: probes start ${later(retryAfterMs)}.`,
  THROTTLED: ({ details: { requests, accepts } }) =>
    `A downstream that accepts more calls: it accepted ${accepts} of the last ${requests}.`,
  VENDOR_LIMITED: ({ details: { paused, byOutageRule }, retryAfterMs }) => {
    if (paused) return `The end of the vendor’s pause, ${later(retryAfterMs)}.`
    if (byOutageRule)
      return `A reachable store, or a retry ${later(retryAfterMs)}: this pod’s share was used up.`
    return `A retry ${later(retryAfterMs)}, a longer queue timeout, or a larger limit.`
  },
  CALL_TIMEOUT: ({ details: { limitMs } }) =>
    limitMs === undefined ? 'A faster answer.' : `An answer within ${readableMs(limitMs)}.`,
  DEADLINE_EXCEEDED: () => 'More time: its deadline passed before it could be answered.',
  VENDOR_ERROR: () => 'A vendor that answers.',
  STORE_UNAVAILABLE: () => 'A reachable store, or an outage rule other than refuse.',
  STAGE_REFUSED: ({ stage }) => `A decision of the application’s stage ${stage} to admit it.`,
  SHUTTING_DOWN: () => 'Another pod: this one is shutting down.',
}

/** Undefined if Spillway did not refuse the call. */
export function remedyFor(code: string, refusal: Refusal): string | undefined {
  return Object.hasOwn(REMEDIES, code) ? REMEDIES[code as ErrorCode](refusal) : undefined
}

function later(ms: number | undefined): string {
  return ms === undefined ? 'later' : `${readableMs(ms)} later`
}

function part(value: unknown): string {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : 'higher'
}

function slots(limit: unknown): string {
  return typeof limit === 'number' && Number.isFinite(limit) ? `${limit} slots` : 'all slots'
}
