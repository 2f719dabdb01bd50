/**
 * The guard of one downstream: its ten stages, in the order of `order.ts`, around every call. What
 * protects the downstream is shared by all pods, what protects this pod is in memory; a call that
 * meets no obstacle passes all of it without waiting for anything but, with a remote store, its
 * permits.
 */

import { closedError } from '../core/errors.js'
import { callSafely } from '../core/events.js'
import { type Duration, duration, validate } from '../core/options/checks.js'
import { definedOf } from '../core/options/omit-undefined.js'
import type { Attempt } from '../local/retry/attempts.js'
import type { RetryResult } from '../local/retry/retry.js'
import type { BreakerChange } from '../shared/circuit-breaker/api.js'
import type { BreakerLanes } from '../shared/circuit-breaker/breaker-lanes.js'
import { type BreakerControls, createControls } from '../shared/circuit-breaker/controls.js'
import { ALL_LANES, DEFAULT_LANE } from '../shared/default-lane.js'
import { assemble, type GuardSurroundings } from './assemble.js'
import { ClosingSign } from './closing.js'
import type { CallFunction } from './context.js'
import { DecisionBook } from './decisions/decision-book.js'
import type { DecisionLog } from './decisions/decision-log.js'
import { asAsked, type Degradable, FallbackChain } from './fallback.js'
import { createFetch, type Fetch, type FetchOptions } from './fetch.js'
import { type FleetGuardReport, readGuard } from './fleet.js'
import { type GuardSnapshot, snapshotOf } from './guard-snapshot.js'
import { headroomOf } from './headroom.js'
import { JobGate } from './jobs/job-gate.js'
import type { Machinery } from './machinery.js'
import type { CheckedGuard } from './options.js'
import { halfOpenError } from './refusals.js'
import type { RunOptions } from './run-options.js'
import { startCall } from './start-call.js'
import { type GuardTimings, Timings } from './timings.js'

export interface Guard {
  readonly name: string
  /**
   * Makes the call, or refuses it with a `SpillwayError`. What the function throws comes out; with
   * fallbacks, only if none of them has an answer.
   */
  run<T>(fn: CallFunction<T>, options?: RunOptions): Promise<T>
  /** The same, with a word on whether the value is what was asked for. */
  runDegradable<T>(fn: CallFunction<T>, options?: RunOptions): Promise<Degradable<T>>
  /** The call alone: without fallbacks and without throwing, and with every attempt. */
  tryRun<T>(fn: CallFunction<T>, options?: RunOptions): Promise<RetryResult<T>>
  /** For operating the breaker by hand, on all pods; nothing without one. */
  readonly breaker: BreakerControls | undefined
  /** `fetch`, guarded: for any client that takes one. The call ends when its body does. */
  readonly fetch: Fetch
  /** The same for calls that have something in common: a lane, a user, a cost. */
  fetchFor(options: RunOptions): Fetch
  snapshot(): GuardSnapshot
  /**
   * How much it could take on in this lane, from 0 (nothing now) to 1, as far as this pod knows without asking:
   * the least fraction that is left of any limit and of this pod's slots; 0 while the circuit is open or the
   * vendor wants a pause.
   */
  headroom(lane?: string): number
  /**
   * Drains: refuses with CLOSED what waits or comes later, lets what runs finish for so long (30
   * seconds unless told otherwise), gives back what it holds and tells the last outcomes.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

/**
 * For the gateway: lanes that its configuration names always exist, whatever calls of other lanes there are.
 * Replaces those of an earlier configuration.
 */
export function nameLanes(guard: Guard, lanes: Iterable<string>): void {
  ;(guard as SharedGuard).nameLanes(lanes)
}

const DEFAULT_GRACE_MS = 30_000
const NO_OPTIONS: RunOptions = {}

export class SharedGuard implements Guard {
  readonly name: string
  readonly #machinery: Machinery
  readonly #closing: ClosingSign
  readonly breaker: BreakerControls | undefined
  readonly fetch: Fetch
  readonly #fetching: FetchOptions
  readonly #fallback: FallbackChain | undefined
  /** A breaker may outlive its guard: another one of the same name goes by it. */
  #stopHeeding: (() => void)[] = []
  #closed: Promise<void> | undefined
  #onIdle: (() => void) | undefined

  /** `before`: the guard of this name that it takes the place of. */
  constructor(
    name: string,
    options: CheckedGuard,
    surroundings: GuardSurroundings,
    before?: SharedGuard,
  ) {
    const around = { ...surroundings, before: before === undefined ? undefined : before.#machinery }
    this.name = name
    this.#closing = new ClosingSign(around.clock)
    const machinery = assemble(name, options, around, this.#closing, () => this.#onFree())
    this.#machinery = machinery
    const { breaker, watch, counted, clock, judging } = machinery
    const { fallback } = options
    this.#fallback = fallback && new FallbackChain(name, fallback, clock, judging)
    this.breaker = breaker && createControls(breaker, around.pod)
    const { hops, ...fetching } = options.fetch ?? {}
    this.#fetching = definedOf({ ...fetching, hops }) as FetchOptions
    this.fetch = this.fetchFor(NO_OPTIONS)
    if (breaker !== undefined) this.#heedBreaker(breaker, options.breaker?.per === 'vendor')
    // With limits, their book has started it.
    if (counted === undefined) watch?.start(undefined)
  }

  /** The fleet's, and this pod's own where there is a quorum. */
  #heedBreaker(breaker: BreakerLanes, everywhere: boolean): void {
    const { dispatcher } = this.#machinery
    const heed = ({ lane, to }: BreakerChange) => {
      const where = everywhere || lane === ALL_LANES ? undefined : lane
      // An open breaker empties the room at once: those calls fail fast, they do not wait.
      if (to === 'open' || to === 'isolated') {
        dispatcher.empty(where, (each) => breaker.refuse(each))
      }
      // Whoever still waits did not hear that it was open. Those who come now may be probes.
      if (to === 'half-open') dispatcher.empty(where, (each) => halfOpenError(this.name, each))
    }
    this.#stopHeeding = [breaker.onChange(heed), breaker.onOwnChange(heed)]
  }

  run<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<T> {
    if (this.#fallback === undefined) return this.#call(fn, options)
    return this.runDegradable(fn, options).then(({ value }) => value)
  }

  runDegradable<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<Degradable<T>> {
    if (this.#fallback === undefined) return this.#call(fn, options).then(asAsked)
    return this.#fallback.run(() => this.#call(fn, options), fn, options)
  }

  #call<T>(fn: CallFunction<T>, options: RunOptions, report?: Attempt[]): Promise<T> {
    const { tracer, name, lanes } = this.#machinery
    const { lane: asked = DEFAULT_LANE, traceParent: parent } = options
    if (tracer === undefined) {
      return startCall(this.#machinery, fn, options, report && { report })
    }
    // What goes wrong with a trace is not the call's.
    const safely = <R>(call: () => R) => callSafely<R | undefined>(name, 'tracer', call, undefined)
    const lane = lanes.expected(asked)
    const trace = safely(() => tracer.begin({ guard: name, lane, parent }))
    const answer = startCall(this.#machinery, fn, options, { report, trace })
    answer.then(
      () => safely(() => trace?.answered()),
      (error) => safely(() => trace?.refused(error)),
    )
    return answer
  }

  async tryRun<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<RetryResult<T>> {
    const attempts: Attempt[] = []
    try {
      const value = await this.#call(fn, options, attempts)
      return { ok: true, value, attempts }
    } catch (error) {
      return { ok: false, error, attempts }
    }
  }

  fetchFor(options: RunOptions): Fetch {
    return createFetch(
      // A request is for one downstream: no other guard could send it.
      (fn, own) => this.#call(fn, own),
      this.#machinery.clock,
      this.#fetching,
      options,
    )
  }

  snapshot(): GuardSnapshot {
    return snapshotOf(this.#machinery, this.#fallback?.counts() ?? [])
  }

  headroom(lane: string = DEFAULT_LANE): number {
    return headroomOf(this.#machinery, this.#machinery.lanes.expected(lane))
  }

  /** How it stands in the whole fleet; other pods use these lanes. */
  readFleet(lanes: Iterable<string>): Promise<FleetGuardReport> {
    const { name, breaker, counted: limits, lanes: own } = this.#machinery
    return readGuard({ name, breaker, limits, lanes: [...own.names(), ...lanes] })
  }

  /** From now on it measures how long calls wait and take. */
  timings(): GuardTimings {
    this.#machinery.timings ??= new Timings(this.name)
    return this.#machinery.timings
  }

  /** From now on it notes some of what it decides. */
  keepDecisions(log: DecisionLog): DecisionBook {
    const book = new DecisionBook(this.#machinery, log)
    this.#machinery.decisions = book
    return book
  }

  /** Not any more, unless somebody else has begun since. */
  stopDecisions(book: DecisionBook): void {
    if (this.#machinery.decisions === book) this.#machinery.decisions = undefined
  }

  /** For whoever shows it. */
  get machinery(): Readonly<Machinery> {
    return this.#machinery
  }

  /** Replaces the lanes that the configuration names, beside those of the guard's own options. */
  nameLanes(named: Iterable<string>): void {
    const { lanes, options } = this.#machinery
    const own = options.hedge?.lane
    lanes.nameLanes(own === undefined ? named : [...named, own])
  }

  /** For job queues that go by this guard. */
  jobGate(lane: string | undefined): JobGate {
    return new JobGate(this.#machinery, lane)
  }

  get closed(): boolean {
    return this.#machinery.closed
  }

  async close({ graceMs = DEFAULT_GRACE_MS }: { graceMs?: Duration } = {}): Promise<void> {
    const ms = validate('graceMs', graceMs, duration({ min: 0 }))
    this.#closed ??= this.#drain()
    // Of two that close it, the less patient one decides.
    const patience = this.#machinery.clock.schedule(ms, () => this.#giveUp())
    try {
      await this.#closed
    } finally {
      patience.cancel()
    }
  }

  async #drain(): Promise<void> {
    const { dispatcher, running, breaker, counted, room, shedder, slots, throttles } =
      this.#machinery
    this.#machinery.closed = true
    shedder?.close()
    this.#closing.close()
    for (const letGo of this.#machinery.overdue) letGo()
    dispatcher.empty(undefined, () => closedError('room', this.name))
    const tripsOver = dispatcher.close()
    if (running.length > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    await tripsOver
    room.close()
    slots.lanes?.close()
    throttles?.close()
    for (const stop of this.#stopHeeding) stop()
    await Promise.all([breaker?.close(), counted?.close()])
    if (counted === undefined) await this.#machinery.watch?.close()
  }

  /** Their callers hear of it, and what they held comes back. Each takes itself off the list. */
  #giveUp(): void {
    const { running } = this.#machinery
    while (running.first !== undefined) running.first.giveUp(closedError('call', this.name))
  }

  #onFree(): void {
    const { room, dispatcher, running } = this.#machinery
    if (running.length === 0) this.#onIdle?.()
    if (room.length > 0) dispatcher.freed()
  }
}
