/**
 * The moment after which nobody wants the answer any more. It travels with the request through
 * AsyncLocalStorage, so that two requests under way at once never see each other's, and it only
 * ever moves closer: of two deadlines the earlier wins.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { SpillwayError, type Stage } from '../errors.js'
import { type Duration, duration, validate } from '../options/checks.js'
import { type Clock, systemClock } from './clock.js'

export class Deadline {
  /** In milliseconds of the clock it was made with. */
  readonly atMs: number
  readonly #clock: Clock

  constructor(atMs: number, clock: Clock) {
    this.atMs = atMs
    this.#clock = clock
  }

  /** Milliseconds left; zero once it has passed. */
  remainingMs(): number {
    return Math.max(0, this.atMs - this.#clock.now())
  }

  get expired(): boolean {
    return this.#clock.now() >= this.atMs
  }

  /** An earlier deadline for what is called from here, so that time is left for work done here. */
  withReserve(reserveMs: Duration): Deadline {
    const ms = validate('reserveMs', reserveMs, duration({ min: 0 }))
    return new Deadline(this.atMs - ms, this.#clock)
  }
}

/**
 * A deadline `timeoutMs` from now. What is left of somebody else's may have run out on its way here:
 * a negative time is a deadline that has passed, not a mistake.
 */
export function createDeadline(timeoutMs: Duration, clock: Clock = systemClock): Deadline {
  const ms = validate('timeoutMs', timeoutMs, duration({ min: -Number.MAX_VALUE }))
  return new Deadline(clock.now() + ms, clock)
}

export function earlierOf(
  one: Deadline | undefined,
  other: Deadline | undefined,
): Deadline | undefined {
  if (one === undefined) return other
  if (other === undefined) return one
  return one.atMs <= other.atMs ? one : other
}

const storage = new AsyncLocalStorage<Deadline>()

/** The deadline of the request this code runs for, if it has one. */
export function currentDeadline(): Deadline | undefined {
  return storage.getStore()
}

/** Runs `fn`, and all it starts, under the earlier of this deadline and the one already there. */
export function runWithDeadline<T>(deadline: Deadline | undefined, fn: () => T): T {
  const current = storage.getStore()
  const effective = earlierOf(current, deadline)
  if (effective === undefined || effective === current) return fn()
  return storage.run(effective, fn)
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
