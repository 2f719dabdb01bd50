/**
 * A request's way over several services. How much time is left and which attempt this is travel in
 * headers, as milliseconds and a number, so that clocks need not agree; that somebody further on has
 * tried again already comes back with the answer. What came in is kept with the request it came with.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { object, optional, text, validate } from './options/checks.js'
import { headerOf } from './retry-after.js'
import type { Clock } from './time/clock.js'
import { createDeadline, currentDeadline, type Deadline, runWithDeadline } from './time/deadline.js'

export interface HopHeaders {
  /** Milliseconds left. Default: `spillway-deadline-ms`. */
  deadline?: string
  /** Which attempt of the caller's this is. Default: `spillway-attempt`. */
  attempt?: string
  /** On an answer: this has been tried again already, or should not be. Default: `spillway-retried`. */
  retried?: string
}

const readNames = object({
  deadline: optional(text(), 'spillway-deadline-ms'),
  attempt: optional(text(), 'spillway-attempt'),
  retried: optional(text(), 'spillway-retried'),
})

export type HopNames = ReturnType<typeof readNames>

export function hopNames(headers: HopHeaders = {}): HopNames {
  const { deadline, attempt, retried } = validate('hops', headers, readNames)
  return {
    deadline: deadline.toLowerCase(),
    attempt: attempt.toLowerCase(),
    retried: retried.toLowerCase(),
  }
}

/** What a request that came in said about itself. */
export interface Hop {
  /** Its caller keeps to this protocol: this is not the edge. */
  readonly inside: boolean
  /** 1: the caller tries for the first time. */
  readonly attempt: number
  /** Somebody in here has tried again, or decided not to. */
  retried: boolean
  onRetried?: () => void
}

const storage = new AsyncLocalStorage<Hop>()

/** The request this code runs for, if it came with a word about itself. */
export function currentHop(): Hop | undefined {
  const hop = storage.getStore()
  return hop?.inside === true ? hop : undefined
}

/** Whether a retry for the request this code runs for has had its final word. */
export function hasRetried(): boolean {
  return storage.getStore()?.retried === true
}

/** A retry in here has had its final word: whoever called need not try again. */
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

/** What to send along with a request that goes out. */
export function hopHeadersFor(
  names: HopNames,
  attempt: number,
  deadline: Deadline | undefined = currentDeadline(),
): Record<string, string> {
  // A retry of a retry is one, whichever of the two is counted.
  const above = currentHop()?.attempt ?? 1
  const headers: Record<string, string> = { [names.attempt]: String(Math.max(attempt, above)) }
  if (deadline !== undefined) headers[names.deadline] = String(Math.floor(deadline.remainingMs()))
  return headers
}

/** Anybody may send a header: what is no plain number is no word at all. */
function milliseconds(value: unknown): number | undefined {
  return /^-?\d{1,15}(\.\d+)?$/.test(String(value)) ? Number(value) : undefined
}

function wholeNumber(value: unknown): number | undefined {
  return /^[1-9]\d{0,8}$/.test(String(value)) ? Number(value) : undefined
}
