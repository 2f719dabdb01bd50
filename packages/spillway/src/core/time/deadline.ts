/**
 * The moment after which a request's answer is useless. It travels with the request through
 * AsyncLocalStorage, so concurrent requests never see each other's deadline. Of two deadlines the
 * earlier wins.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { SpillwayError, type Stage } from '../errors.js'
import { type Duration, duration, validate } from '../options/checks.js'
import { type Clock, systemClock } from './clock.js'

/** A point in time by which a call has to end. */
export class Deadline {
  /** Time of the clock it was created with, in milliseconds. */
  readonly atMs: number
  readonly #clock: Clock

  constructor(atMs: number, clock: Clock) {
    this.atMs = atMs
    this.#clock = clock
  }

  /** Milliseconds left; 0 once it has passed. */
  remainingMs(): number {
    return Math.max(0, this.atMs - this.#clock.now())
  }

  /** Whether the time is over. */
  get expired(): boolean {
    return this.#clock.now() >= this.atMs
  }

  /** An earlier deadline for nested calls, which leaves `reserveMs` for work in this process. */
  withReserve(reserveMs: Duration): Deadline {
    const ms = validate('reserveMs', reserveMs, duration({ min: 0 }))
    return new Deadline(this.atMs - ms, this.#clock)
  }
}

/**
 * Creates a deadline `timeoutMs` from now. A negative value is a deadline that has passed: the time left of a
 * remote deadline can run out on its way here.
 *
 * @example
 * await runWithDeadline(createDeadline('2s'), () => handle(request))
 */
export function createDeadline(timeoutMs: Duration, clock: Clock = systemClock): Deadline {
  const ms = validate('timeoutMs', timeoutMs, duration({ min: -Number.MAX_VALUE }))
  return new Deadline(clock.now() + ms, clock)
}

/** Returns the earlier of two deadlines; undefined if there is none. */
export function earlierOf(
  one: Deadline | undefined,
  other: Deadline | undefined,
): Deadline | undefined {
  if (one === undefined) return other
  if (other === undefined) return one
  return one.atMs <= other.atMs ? one : other
}

const storage = new AsyncLocalStorage<Deadline>()

/**
 * The deadline of the request that this code runs for, if any.
 *
 * @example
 * const leftMs = currentDeadline()?.remainingMs()
 */
export function currentDeadline(): Deadline | undefined {
  return storage.getStore()
}

/**
 * Calls `fn` under the earlier of `deadline` and the current one. Everything that `fn` starts inherits it.
 *
 * @example
 * await runWithDeadline(createDeadline('2s'), () => guard.run(loadUser))
 */
export function runWithDeadline<T, A extends unknown[]>(
  deadline: Deadline | undefined,
  fn: (...args: A) => T,
  ...args: A
): T {
  const current = storage.getStore()
  const effective = earlierOf(current, deadline)
  if (effective === undefined || effective === current) return fn(...args)
  return storage.run(effective, fn, ...args)
}

export function deadlineError(stage: Stage, name: string): SpillwayError {
  return new SpillwayError({
    code: 'DEADLINE_EXCEEDED',
    stage,
    scope: 'local',
    details: { name },
    explain: (details) => `${details.name}: timed out, the deadline of this request has passed`,
  })
}
