/** What would have admitted a refused call, in a sentence: one for each code. */
import type { Details, ErrorCode, Stage } from 'spillway'
import { spoken } from './shown.js'

interface Refusal {
  stage: Stage
  details: Details
  retryAfterMs: number | undefined
}

const REMEDIES: Record<ErrorCode, (refusal: Refusal) => string> = {
  SHED: ({ stage, details }) => {
    if (stage === 'queue') return 'A shorter line: it had stood for longer than its target.'
    const { maxQueue, waiting, maxInFlight, inFlight, pressure, reason } = details
    if (maxInFlight !== undefined)
      return `Fewer than ${maxInFlight} calls in flight; there were ${inFlight}.`
    if (reason === 'deadline') return 'More time before its deadline, or a shorter queue.'
    if (reason === 'tier')
      return `A pressure below what its tier is served at; it was ${part(pressure)}.`
    if (pressure !== undefined)
      return `Less pressure (it was ${part(pressure)}), or a higher priority.`
    if (maxQueue !== undefined)
      return `Fewer than ${maxQueue} waiting calls; there were ${waiting}.`
    return 'Permission by the application’s function shed.when.'
  },
  USER_LIMITED: ({ details: { level, limit, windowMs }, retryAfterMs }) =>
    `Coming ${later(retryAfterMs)}, or a limit per ${level} of more than ${limit} in ${spoken(windowMs)}.`,
  QUEUE_FULL: ({ stage, details: { size, limit, why } }) => {
    if (why === 'displaced') return 'A higher priority: a call of higher priority took its place.'
    if (stage === 'concurrency') return `A free slot of the ${limit}, or the option queue.`
    if (stage === 'pace') return 'Coming a beat later, or the option queue.'
    return `A free place in the queue of ${size}, or a higher priority than a call in it.`
  },
  QUEUE_TIMEOUT: ({ details: { waitedMs, active, limit } }) =>
    `A free slot or permit within ${spoken(waitedMs)}: ${active} of ${slots(limit)} were in use; or a longer queue timeout.`,
  CIRCUIT_OPEN: ({ details: { state }, retryAfterMs }) =>
    state === 'half-open'
      ? 'A place among the probes, or a closed breaker: probes decide now.'
      : state === 'isolated'
        ? 'Its release: an operator has isolated the downstream.'
        : `A closed breaker: it is tried again ${later(retryAfterMs)}.`,
  THROTTLED: ({ details: { requests, accepts } }) =>
    `A downstream that accepts more calls: it accepted ${accepts} of the last ${requests}.`,
  VENDOR_LIMITED: ({ details: { paused, byOutageRule }, retryAfterMs }) => {
    if (paused) return `The end of the vendor’s pause, ${later(retryAfterMs)}.`
    if (byOutageRule)
      return `A store that answers, or coming ${later(retryAfterMs)}: this pod’s share was used up.`
    return `Coming ${later(retryAfterMs)}, more patience than that, or a larger limit.`
  },
  CALL_TIMEOUT: ({ details: { limitMs } }) =>
    limitMs === undefined ? 'A faster answer.' : `An answer within ${spoken(limitMs)}.`,
  DEADLINE_EXCEEDED: () => 'More time: its deadline passed before it could be answered.',
  VENDOR_ERROR: () => 'A vendor that answers.',
  STORE_UNAVAILABLE: () => 'A store that answers, or an outage rule other than refuse.',
  STAGE_REFUSED: ({ stage }) => `Permission by the guard’s own stage ${stage}.`,
  SHUTTING_DOWN: () => 'Another pod: this one is being closed.',
}

export function remedyFor(code: ErrorCode, refusal: Refusal): string {
  return REMEDIES[code](refusal)
}

function later(ms: number | undefined): string {
  return ms === undefined ? 'later' : `${spoken(ms)} later`
}

function part(value: unknown): string {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : 'higher'
}

function slots(limit: unknown): string {
  return typeof limit === 'number' && Number.isFinite(limit) ? `${limit} slots` : 'all slots'
}
