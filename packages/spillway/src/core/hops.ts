/**
 * Passes time limits and attempts of a request on through several services. The remaining time and the number of the
 * attempt are sent in headers, as a duration and a number, so clocks need not agree. A response header reports
 * whether a service further down has already retried. Incoming values are kept in the async context of their request.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Duration, duration, object, optional, text, validate } from './options/checks.js'
import { headerOf } from './retry-after.js'
import type { Clock } from './time/clock.js'
import {
  createDeadline,
  currentDeadline,
  type Deadline,
  deadlineError,
  runWithDeadline,
} from './time/deadline.js'

/** Names of the headers that carry deadline and attempt from service to service. */
export interface HopHeaders {
  /** Header with the milliseconds left. Default: `spillway-deadline-ms`. */
  deadline?: string
  /** Header with the number of the caller's attempt. Default: `spillway-attempt`. */
  attempt?: string
  /** Response header: this was already retried, or must not be. Default: `spillway-retried`. */
  retried?: string
  /**
   * Time that this service keeps for itself when it passes the remaining time on. A call with no more time than
   * that left is refused with `DEADLINE_EXCEEDED`. Range: from 0 ms. Default: a tenth of the remaining time,
   * from 100 ms to 2 s.
   */
  reserveMs?: Duration
}

const MIN_RESERVE_MS = 100
const MAX_RESERVE_MS = 2_000
const RESERVE_SHARE = 0.1

const readNames = object({
  deadline: optional(text(), 'spillway-deadline-ms'),
  attempt: optional(text(), 'spillway-attempt'),
  retried: optional(text(), 'spillway-retried'),
  reserveMs: optional(duration({ min: 0 })),
})

export type HopNames = ReturnType<typeof readNames>

export function hopNames(headers: HopHeaders = {}): HopNames {
  const { deadline, attempt, retried, reserveMs } = validate('hops', headers, readNames)
  return {
    deadline: deadline.toLowerCase(),
    attempt: attempt.toLowerCase(),
    retried: retried.toLowerCase(),
    reserveMs,
  }
}

/** Deadline and attempt of an incoming request. */
export interface Hop {
  /** The caller sends these headers, so this service is not the edge. */
  readonly inside: boolean
  /** 1 for the caller's first attempt. */
  readonly attempt: number
  /** A retry within this request has retried, or decided not to. */
  retried: boolean
  onRetried?: () => void
}

const storage = new AsyncLocalStorage<Hop>()

/** The incoming request that this code runs for, if it sent any of the headers. */
export function currentHop(): Hop | undefined {
  const hop = storage.getStore()
  return hop?.inside === true ? hop : undefined
}

/** Whether a retry within the current request has already decided. */
export function hasRetried(): boolean {
  return storage.getStore()?.retried === true
}

/** Notes that a retry within the current request has decided, so its caller need not retry. */
export function noteRetried(): void {
  const hop = storage.getStore()
  if (hop === undefined || hop.retried) return
  hop.retried = true
  hop.onRetried?.()
}

/** Runs a handler for a request that came in with these headers. */
export function runHop<T>(
  headers: unknown,
  names: HopNames,
  fn: () => T,
  options: { clock?: Clock; onRetried?: () => void } = {},
): T {
  const attempt = wholeNumber(headerOf(headers, names.attempt))
  const leftMs = milliseconds(headerOf(headers, names.deadline))
  const deadline = leftMs === undefined ? undefined : createDeadline(leftMs, options.clock)
  const { onRetried } = options
  const hop: Hop = {
    inside: attempt !== undefined || leftMs !== undefined,
    attempt: attempt ?? 1,
    retried: false,
    ...(onRetried && { onRetried }),
  }
  const inside = () => runWithDeadline(deadline, fn)
  return storage.run(hop, inside)
}

/** Headers for an outgoing request. */
export function hopHeadersFor(
  names: HopNames,
  attempt: number,
  deadline: Deadline | undefined = currentDeadline(),
): Record<string, string> {
  // A first attempt on behalf of a retry by this service's caller is a retry, too.
  const above = currentHop()?.attempt ?? 1
  const headers: Record<string, string> = { [names.attempt]: String(Math.max(attempt, above)) }
  if (deadline !== undefined) {
    headers[names.deadline] = String(timeToPassOn(deadline.remainingMs(), names.reserveMs))
  }
  return headers
}

/** A call with no more milliseconds left than these has nothing to pass on. */
export function leastReserveMs({ reserveMs }: HopNames): number {
  return reserveMs ?? MIN_RESERVE_MS
}

/** Milliseconds that the next service gets. Refuses the call if there are none. */
function timeToPassOn(remainingMs: number, reserveMs: number | undefined): number {
  const share = Math.max(MIN_RESERVE_MS, remainingMs * RESERVE_SHARE)
  const leftMs = remainingMs - (reserveMs ?? Math.min(share, MAX_RESERVE_MS))
  if (leftMs <= 0) throw deadlineError('timeout', 'hops')
  return Math.floor(leftMs)
}

/** Headers come from anywhere. Everything but a plain number is ignored. */
function milliseconds(value: unknown): number | undefined {
  return /^-?\d{1,15}(\.\d+)?$/.test(String(value)) ? Number(value) : undefined
}

function wholeNumber(value: unknown): number | undefined {
  return /^[1-9]\d{0,8}$/.test(String(value)) ? Number(value) : undefined
}
