/**
 * The guard of one downstream: the stages of `pipeline/stages.ts` around every call. State that protects the
 * downstream is shared by all pods; state that protects this pod is in memory. An unobstructed call waits only for
 * its permits, and only with a remote store.
 */
import { closedError } from '../core/errors.js'
import { callSafely, emit, listening } from '../core/events.js'
import { type Duration, duration, validate } from '../core/options/checks.js'
import { omitUndefined } from '../core/options/omit-undefined.js'
import type { Attempt } from '../local/retry/attempts.js'
import type { RetryResult } from '../local/retry/retry.js'
import type { BreakerChange } from '../shared/circuit-breaker/api.js'
import type { BreakerLanes } from '../shared/circuit-breaker/breaker-lanes.js'
import { type BreakerControls, createControls } from '../shared/circuit-breaker/controls.js'
import { readQuarantined } from '../shared/key-quarantine/read-keys.js'
import { ALL_LANES, DEFAULT_LANE } from '../shared/lanes/lane-names.js'
import { buildGuard, type GuardParts } from './build-guard.js'
import type { DecisionLog } from './decisions/decision-log.js'
import { DecisionRecorder } from './decisions/decision-recorder.js'
import { createFetch, type Fetch, type FetchOptions } from './fetch/fetch.js'
import { createSdk, type SdkClass, type SdkOptions, type SdkSettings } from './fetch/sdk.js'
import { type FleetGuardReport, readGuard } from './fleet/fleet-report.js'
import { headroomOf } from './fleet/headroom.js'
import { JobLane } from './jobs/job-lane.js'
import { TokenEstimates } from './llm/estimate/token-estimates.js'
import type { CheckedGuard } from './options.js'
import type { CallWatchers, JudgedCall } from './pipeline/call.js'
import type { CallFunction } from './pipeline/context.js'
import { type GuardTimings, Timings } from './pipeline/counters.js'
import type { StageDefinition } from './pipeline/stages.js'
import { checkRunOptions, startCall } from './pipeline/start-call.js'
import type { RunOptions } from './run-options.js'
import type { GuardEnvironment } from './shared-parts.js'
import { type GuardSnapshot, snapshotOf } from './snapshot.js'
import { type Degradable, FallbackCounts, ownResult, type UsedFallback } from './stages/fallback.js'
import { halfOpenError } from './stages/refusal-errors.js'

/** The guard of one downstream: runs calls through its stages. Created by `spillway.guard(name, options)`. */
export interface Guard {
  /** Name in errors, events and metrics, and in the keys of the store. */
  readonly name: string
  /**
   * Makes the call, or refuses it with a `SpillwayError`. Rejects with what the function throws. With fallbacks: if the
   * call fails, or its value is judged a failure, the answer of the first fallback that has one.
   *
   * @example
   * const user = await guard.run(({ signal }) => loadUser(id, { signal }), { user: id, timeoutMs: '5s' })
   */
  run<T>(fn: CallFunction<T>, options?: RunOptions): Promise<T>
  /**
   * `run`, and whether the value came from the call or from a fallback.
   *
   * @example
   * const { value, degraded } = await guard.runDegradable(() => recommend(user))
   */
  runDegradable<T>(fn: CallFunction<T>, options?: RunOptions): Promise<Degradable<T>>
  /**
   * The call without fallbacks. Does not reject: resolves to the result with every attempt.
   *
   * @example
   * const result = await guard.tryRun(() => charge(order))
   * if (!result.ok) log(result.error, result.attempts)
   */
  tryRun<T>(fn: CallFunction<T>, options?: RunOptions): Promise<RetryResult<T>>
  /** Controls the breaker manually, on all pods; undefined without one. */
  readonly breaker: BreakerControls | undefined
  /**
   * `fetch`, guarded: for any client that accepts one. The call ends when its body does.
   *
   * @example
   * const response = await guard.fetch('https://api.example.com/items')
   */
  readonly fetch: Fetch
  /**
   * `fetch` with options that all its calls share: a lane, a user, a cost.
   *
   * @example
   * const client = new Client({ fetch: guard.fetchFor({ lane: 'batch', priority: 'low' }) })
   */
  fetchFor(options: RunOptions): Fetch
  /**
   * Options for the constructor of a vendor's SDK: a guarded `fetch`, and the SDK's own retries turned off. The lane of
   * each request is its model, its cost is estimated from its body and settled by the usage in its answer. Refusals
   * become answers with the vendor's error format, so the SDK throws its own errors; `refusalOf(error)` returns the
   * refusal behind them. Throws an `OptionsError` for a class it does not recognise.
   *
   * @example
   * const client = new OpenAI({ ...guard.sdk(OpenAI) })
   */
  sdk(sdk: SdkClass, options?: SdkOptions): SdkSettings
  /** State and counts of the guard in this pod. */
  snapshot(): GuardSnapshot
  /**
   * Free capacity of a lane, from 0 (none now) to 1, as far as this pod knows without I/O: the smallest
   * fraction left of any limit and of the slots of this pod. 0 while the circuit is open or the lane is paused.
   */
  headroom(lane?: string): number
  /**
   * Drains the guard: refuses waiting and later calls with SHUTTING_DOWN, lets running calls finish, releases
   * what it holds and reports the last outcomes.
   * @param options.graceMs - Longest wait for running calls. Range: from 0 ms. Default: 30 seconds.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

/** For the gateway: lanes that its configuration names always exist. Replaces those of an earlier one. */
export function nameLanes(guard: Guard, lanes: Iterable<string>): void {
  ;(guard as SharedGuard).nameLanes(lanes)
}

/**
 * For the gateway: functions of this guard make no nested calls, so attempts get no async context. In Node 20 one
 * `AsyncLocalStorage.run` slows down every promise, timer and HTTP message of the process: without it the gateway
 * needs a fifth less CPU time per request.
 */
export function withoutNestedCalls(guard: Guard): void {
  const { calls } = (guard as SharedGuard).parts
  calls.attempts.nested = false
  if (calls.retry.policy !== undefined) calls.retry.policy.nested = false
}

/**
 * For the gateway: how busy this pod is with calls of this guard. The larger of two numbers: running and waiting calls
 * as a fraction of `concurrency.limit`, and the highest signal of `shed`. 0 without either option.
 */
export function pressureOf(guard: Guard): number {
  return (guard as SharedGuard).pressure()
}

/** For the gateway, which has its own fallbacks: counts one that answered, and logs the decision. */
export function noteFallback(guard: Guard, used: UsedFallback): void {
  ;(guard as SharedGuard).noteFallback(used)
}

const DEFAULT_GRACE_MS = 30_000
const NO_OPTIONS: RunOptions = {}

/** Without one of these an attempt that is never answered keeps its slot until its caller gives up. */
function hasTimeout({ timeout }: CheckedGuard): boolean {
  return (timeout?.callMs ?? timeout?.firstByteMs ?? timeout?.idleMs) !== undefined
}

export class SharedGuard implements Guard {
  readonly name: string
  readonly parts: Readonly<GuardParts>
  readonly breaker: BreakerControls | undefined
  readonly fetch: Fetch
  readonly #fetching: FetchOptions
  /** Of `sdk`; undefined until it is used. */
  #estimates: TokenEstimates | undefined
  /** Fallbacks of the gateway; those of the option `fallback` count themselves. */
  readonly #fallbackCounts: FallbackCounts
  /** A breaker may outlive its guard: the guard that replaces this one may use it. */
  #stopListening: (() => void)[] = []
  #closed: Promise<void> | undefined
  /** The guard has no timeout, and no event has reported that yet. */
  #isTimeoutMissing = false

  /** `before`: the guard of this name that it replaces. `table`: other stages than the built-in ones, for tests. */
  constructor(
    name: string,
    options: CheckedGuard,
    environment: GuardEnvironment,
    before?: SharedGuard,
    table?: readonly StageDefinition[],
  ) {
    this.name = name
    this.parts = buildGuard(name, options, environment, before?.parts, table)
    const { breaker, watch, countedLimits } = this.parts
    this.breaker = breaker && createControls(breaker, environment.pod)
    this.#fallbackCounts = before === undefined ? new FallbackCounts() : before.#fallbackCounts
    const { hops, ...fetching } = options.fetch ?? {}
    this.#fetching = omitUndefined({ ...fetching, hops }) as FetchOptions
    this.fetch = this.fetchFor(NO_OPTIONS)
    if (breaker !== undefined) this.#listenTo(breaker, options.breaker?.per === 'vendor')
    // With limits, their client has started the watch.
    if (countedLimits === undefined) watch?.start(undefined)
    this.#isTimeoutMissing = before?.isTimeoutReported !== true && !hasTimeout(options)
    if (this.#isTimeoutMissing) this.#reportMissingTimeout()
  }

  /** A replacement of this guard does not repeat the report. */
  get isTimeoutReported(): boolean {
    return !hasTimeout(this.parts.options) && !this.#isTimeoutMissing
  }

  /** When the guard is created or, if there is no listener then, with a later call. */
  #reportMissingTimeout(): void {
    if (!listening()) return
    this.#isTimeoutMissing = false
    emit({ type: 'guard.no-timeout', name: this.name })
  }

  /** Reports to the fleet's breaker and, with a quorum, to this pod's breaker. */
  #listenTo(breaker: BreakerLanes, everywhere: boolean): void {
    const { dispatcher } = this.parts.queue
    const changed = ({ lane, to }: BreakerChange) => {
      const where = everywhere || lane === ALL_LANES ? undefined : lane
      // An open breaker empties the queue at once: those calls fail fast.
      if (to === 'open' || to === 'isolated') {
        dispatcher.empty(where, (each) => breaker.refuse(each))
      }
      // This pod missed that it was open: waiting calls are refused. Calls that arrive now may be probes.
      if (to === 'half-open') dispatcher.empty(where, (each) => halfOpenError(this.name, each))
    }
    this.#stopListening = [breaker.onChange(changed), breaker.onOwnChange(changed)]
  }

  run<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<T> {
    if (this.parts.stages.fallback === undefined) return this.#call(fn, options)
    return this.runDegradable(fn, options).then(({ value }) => value)
  }

  runDegradable<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<Degradable<T>> {
    const { fallback } = this.parts.stages
    const judged: JudgedCall = {}
    const answer = () => this.#call(fn, options, { judged })
    if (fallback === undefined) return answer().then((value) => ownResult(value, judged.verdict))
    return fallback.run(answer, judged, fn, options)
  }

  #call<T>(fn: CallFunction<T>, options: RunOptions, watchers?: CallWatchers): Promise<T> {
    if (this.#isTimeoutMissing) this.#reportMissingTimeout()
    const { tracer, name, lanes, calls } = this.parts
    if (tracer === undefined) return startCall(calls, fn, options, watchers)
    const { lane: requested = DEFAULT_LANE, traceParent: parent } = options
    // A tracer that throws does not fail the call.
    const safely = <R>(call: () => R) => callSafely<R | undefined>(name, 'tracer', call, undefined)
    const lane = lanes.expected(requested)
    const trace = safely(() => tracer.begin({ guard: name, lane, parent }))
    const answer = startCall(calls, fn, options, { ...watchers, trace })
    answer.then(
      () => safely(() => trace?.answered()),
      (error) => safely(() => trace?.refused(error)),
    )
    return answer
  }

  async tryRun<T>(fn: CallFunction<T>, options: RunOptions = NO_OPTIONS): Promise<RetryResult<T>> {
    const attempts: Attempt[] = []
    try {
      const value = await this.#call(fn, options, { report: attempts })
      return { ok: true, value, attempts }
    } catch (error) {
      return { ok: false, error, attempts }
    }
  }

  fetchFor(options: RunOptions): Fetch {
    checkRunOptions(options)
    return createFetch(
      // Without fallbacks: another guard has another downstream and cannot send this request.
      (fn, own) => this.#call(fn, own),
      this.parts.clock,
      this.#fetching,
      options,
    )
  }

  sdk(sdk: SdkClass, options: SdkOptions = {}): SdkSettings {
    const limits = this.parts.countedLimits?.settings
    const fetchWith = (own: FetchOptions, call: RunOptions) =>
      createFetch(
        (fn, about) => this.#call(fn, about),
        this.parts.clock,
        { ...this.#fetching, respond: false, ...own },
        call,
      )
    const { clock } = this.parts
    this.#estimates ??= new TokenEstimates(clock)
    const estimates = this.#estimates
    return createSdk({ name: this.name, limits, estimates, clock, fetchWith }, sdk, options)
  }

  snapshot(): GuardSnapshot {
    const snapshot = snapshotOf(this.parts)
    const fallbacks = [...snapshot.fallbacks, ...this.#fallbackCounts.list()]
    return { ...snapshot, fallbacks }
  }

  pressure(): number {
    const { slots, queue, clock, stages } = this.parts
    const nowMs = clock.now()
    const ofSignals = stages.shed?.pressureAt(nowMs).pressure ?? 0
    return Math.max(slots.pressure(queue.dispatcher.waitingForPod(nowMs)), ofSignals)
  }

  noteFallback(used: UsedFallback): void {
    const { step, reason } = used
    this.#fallbackCounts.add(step, reason)
    if (listening()) emit({ type: 'fallback.used', name: this.name, step, reason })
    this.parts.observers.decisions?.degraded(
      used,
      this.parts.lanes.expected(used.call.lane ?? DEFAULT_LANE),
    )
  }

  headroom(lane: string = DEFAULT_LANE): number {
    return headroomOf(this.parts, this.parts.lanes.expected(lane))
  }

  /** The state of the whole fleet; `lanes`: those that other pods use. */
  readFleet(lanes: Iterable<string>): Promise<FleetGuardReport> {
    const { name, breaker, countedLimits: limits, lanes: own, store } = this.parts
    const keys = () => readQuarantined(store, name)
    return readGuard({ name, breaker, limits, keys, lanes: [...own.names(), ...lanes] })
  }

  /** Measures how long calls wait and take from now on. */
  timings(): GuardTimings {
    const { observers } = this.parts
    observers.timings ??= new Timings(this.name)
    return observers.timings
  }

  /** Logs some of its decisions from now on. */
  keepDecisions(log: DecisionLog): DecisionRecorder {
    const recorder = new DecisionRecorder(this.parts, log)
    this.parts.observers.decisions = recorder
    return recorder
  }

  /** Has no effect if another recorder has replaced this one. */
  stopDecisions(recorder: DecisionRecorder): void {
    const { observers } = this.parts
    if (observers.decisions === recorder) observers.decisions = undefined
  }

  /** Replaces the lanes that the configuration names, beside those of the guard's own options. */
  nameLanes(named: Iterable<string>): void {
    const { lanes, options } = this.parts
    const own = options.hedge?.lane
    lanes.nameLanes(own === undefined ? named : [...named, own])
  }

  /** For job queues whose jobs use this guard. */
  jobLane(lane: string | undefined): JobLane {
    return new JobLane(this.parts, lane)
  }

  get closed(): boolean {
    return this.parts.pipeline.closed
  }

  async close({ graceMs = DEFAULT_GRACE_MS }: { graceMs?: Duration } = {}): Promise<void> {
    const ms = validate('graceMs', graceMs, duration({ min: 0 }))
    this.#closed ??= this.#drain()
    // If it is closed twice, the shorter grace counts.
    const grace = this.parts.clock.schedule(ms, () => this.#giveUp())
    try {
      await this.#closed
    } finally {
      grace.cancel()
    }
  }

  async #drain(): Promise<void> {
    const { pipeline, queue, calls, running, breaker, countedLimits, stages, slots, watch } =
      this.parts
    pipeline.closed = true
    stages.shed?.close()
    stages.retry.stopRetries()
    slots.freeAbandoned()
    queue.dispatcher.empty(undefined, () => closedError('queue', this.name))
    const roundTripsOver = queue.dispatcher.close()
    if (running.length > 0) {
      await new Promise<void>((resolve) => {
        calls.attempts.onIdle = resolve
      })
    }
    await roundTripsOver
    pipeline.close()
    for (const stop of this.#stopListening) stop()
    await Promise.all([breaker?.close(), countedLimits?.close()])
    if (countedLimits === undefined) await watch?.close()
  }

  /** Running calls end with a refusal and release what they hold. Each removes itself from the list. */
  #giveUp(): void {
    const { running } = this.parts
    while (running.first !== undefined) running.first.giveUp(closedError('call', this.name))
  }
}
