/**
 * The time that a request has, and how it travels on. A client may say in `spillway-deadline-ms` how much it has left;
 * vendors with `hops` receive what remains. The signal of a request also knows which failures its client
 * causes itself: they say nothing about the vendor, so breakers ignore them.
 */
import { type CallContext, type CallEnd, type Outcome, SpillwayError } from 'spillway'
import { createHops } from 'spillway/http'
import { hopHeadersFor, hopNames, LeaveSignal } from 'spillway/internal'
import { RequestError } from '../response/errors.js'
import type { ClientRequest } from './client-http.js'

const HOPS = createHops()
const NAMES = hopNames()

/** Runs `serve` as part of the request that its client serves itself, if the client says which attempt it is. */
export function runAsHop<T>({ headers }: ClientRequest, serve: () => T): T {
  const { 'spillway-attempt': attempt } = headers
  return attempt === undefined ? serve() : HOPS.run({ 'spillway-attempt': attempt }, serve)
}

/** Headers that tell a vendor the number of the attempt and the time it has. */
export function hopHeaders({ attempt, deadline }: CallContext): string[] {
  return Object.entries(hopHeadersFor(NAMES, attempt, deadline)).flat()
}

/** In milliseconds; not a number, if it says nothing. Time that ran out on the way has run out. */
export function deadlineMs(said: string | string[] | undefined): number {
  if (said === undefined || said === '') return Number.NaN
  const ms = Number(said)
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
