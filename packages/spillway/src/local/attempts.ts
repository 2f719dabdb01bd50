/** One try of a call, as told afterwards. */
import type { Outcome } from '../core/outcome.js'

export interface Attempt {
  /** 1 for the first. */
  attempt: number
  /** The wait before it. */
  delayMs: number
  durationMs: number
  outcome: Outcome
  /** What it threw, if it threw. */
  error?: unknown
}

/**
 * Lets an error tell of all attempts that led to it. The error stays the object the user's function
 * threw, and looks the same: the property is not enumerable. One that cannot take it (frozen, not
 * an object, with such a property of its own) goes without; `tryRun` tells in any case.
 */
export function carryAttempts(error: unknown, attempts: readonly Attempt[]): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  if (Object.hasOwn(error, 'attempts') && attemptsOf(error).length === 0) return
  // Reflect says no where Object throws: an error may forbid it in ways of its own.
  Reflect.defineProperty(error, 'attempts', {
    value: attempts,
    enumerable: false,
    configurable: true,
    writable: true,
  })
}

/** When a retry last had its final word on an error or an answer: one may be thrown many times. */
const conclusions = new WeakMap<object, number>()

export function noteConclusion(about: unknown, nowMs: number): void {
  if (typeof about === 'object' && about !== null) conclusions.set(about, nowMs)
}

/** Whether a retry further in has had its final word on this since then. */
export function concludedSince(about: unknown, sinceMs: number): boolean {
  if (typeof about !== 'object' || about === null) return false
  return (conclusions.get(about) ?? Number.NEGATIVE_INFINITY) >= sinceMs
}

/** What was said about one answer holds for the one that takes its place. */
export function carryConclusion(from: object, to: object): void {
  const atMs = conclusions.get(from)
  if (atMs !== undefined) conclusions.set(to, atMs)
}

/** Every attempt behind an error that came out of `retry.run`; none for any other error. */
export function attemptsOf(error: unknown): readonly Attempt[] {
  if (typeof error !== 'object' || error === null) return []
  const own = Object.getOwnPropertyDescriptor(error, 'attempts')
  return own !== undefined && !own.enumerable && Array.isArray(own.value) ? own.value : []
}
