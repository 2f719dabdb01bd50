/**
 * The deadline of a request. A client may send its remaining time in `spillway-deadline-ms`; vendors with `hops`
 * receive the time that remains. The signal of a request also records failures that the client caused. Breakers ignore
 * those, because they are not the vendor's.
 */
import { type CallContext, type CallEnd, type Outcome, SpillwayError } from 'spillway'
import { hopHeadersFor, hopNames, LeaveSignal, leastReserveMs } from 'spillway/internal'
import { RequestError } from '../response/errors.js'
import type { ClientRequest } from './client-http.js'

const NAMES = hopNames()

/** The time that a request to a vendor with `hops` needs, so that some can be passed on. */
export const HOP_NEEDS_MS = leastReserveMs(NAMES)

/**
 * The number of the client's attempt, if the client sends it. It is passed on as an argument: in an async context it
 * would, after a single such request, slow down every later one of this process on Node 20 and 22.
 */
export function callerAttempt({ headers }: ClientRequest): number | undefined {
  const { 'spillway-attempt': attempt } = headers
  return /^[1-9]\d{0,8}$/.test(String(attempt)) ? Number(attempt) : undefined
}

/** Headers with the number of the attempt and the remaining time, for vendors with `hops`. */
export function hopHeaders({ attempt, deadline }: CallContext, callers: number = 1): string[] {
  // A first attempt that serves a retry of the client is a retry as well.
  return Object.entries(hopHeadersFor(NAMES, Math.max(attempt, callers), deadline)).flat()
}

/** In milliseconds; NaN without the header. Zero and less mean that the deadline has passed. */
export function deadlineMs(header: string | string[] | undefined): number {
  if (header === undefined || header === '') return Number.NaN
  const ms = Number(header)
  if (!Number.isNaN(ms)) return Math.max(0, ms)
  throw invalidDeadline('must be a number of milliseconds, such as 1500')
}

export function invalidDeadline(expected: string): RequestError {
  const message = `spillway-deadline-ms: ${expected}`
  return new RequestError({ status: 400, code: 'INVALID_DEADLINE', message })
}

/** `upload`: its body is still arriving. `deadline`: it set a shorter deadline than the route. */
type ClientCause = 'upload' | 'deadline'

export class ClientSignal extends LeaveSignal {
  cause: ClientCause | undefined
}

/** For guards: the outcome of a call whose failure the client caused. */
export function classifyClientFailure(end: CallEnd): Outcome | undefined {
  if (!('error' in end) || !(end.signal instanceof ClientSignal)) return undefined
  const { cause } = end.signal
  const isLate = end.error instanceof SpillwayError && end.error.code === 'DEADLINE_EXCEEDED'
  return cause === 'upload' || (cause === 'deadline' && isLate) ? 'ignored' : undefined
}
