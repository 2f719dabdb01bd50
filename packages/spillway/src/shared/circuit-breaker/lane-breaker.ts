/**
 * The breaker of one lane, as this pod sees it. Entering a closed breaker and being refused by an open
 * one are decided in memory. Only probes of a half-open breaker need a round trip to the store.
 */

import type { Scope, SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import { type Clock, type Timer, turnMs } from '../../core/time/clock.js'
import {
  type BreakerSpec,
  FAILURE,
  NOTHING,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  SUCCESS,
  sliceUsOf,
} from '../../store/breaker-spec.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerStore,
  BreakerView,
  MaybePromise,
} from '../../store/port.js'
import type { BreakerPermit, BreakerSnapshot, BreakerStateName } from './api.js'
import { type BreakerRide, LaneLine, type Question } from './lane-line.js'
import { refusalOf } from './lane-refusal.js'
import { LaneTraffic, TrackedCall } from './lane-traffic.js'
import { type ProbeAnswer, ProbeDesk } from './probe-desk.js'
import { mostAtOnce } from './ramp.js'
import { explainUnknown } from './refusal-words.js'
import { Replica } from './replica.js'
import { Reporter } from './reporter.js'

export interface LaneBreakerOptions {
  name: string
  lane: string
  /** The id of this pod's incarnation. */
  pod: string
  store: BreakerStore
  clock: Clock
  spec: BreakerSpec
  flushMs: number
  rampMs: number
  maxProbeMs: number
  /** How long an attempt may take; a call in flight counts up to this age while no success is known. */
  timeoutMs: number
  /** Whether the state of the fleet decides, or that of this pod alone. */
  scope: Scope
  /** The calls of the same lane in a guard that this one replaces. */
  traffic?: LaneTraffic | undefined
  onChange(from: BreakerStateName, to: BreakerStateName): void
}

const KIND: Record<Outcome, number> = {
  success: SUCCESS,
  failure: FAILURE,
  slow: SLOW,
  throttled: NOTHING,
  ignored: NOTHING,
}

export interface LanePermit extends BreakerPermit {
  readonly generation: number
  /** The name of the probe, if it is one. */
  readonly id: string | undefined
}

/** The permit of a call that is no probe. */
class CallPermit extends TrackedCall implements LanePermit {
  readonly lane: string
  readonly generation: number

  constructor(lane: string, generation: number) {
    super()
    this.lane = lane
    this.generation = generation
  }

  get probe(): boolean {
    return false
  }

  get id(): undefined {
    return undefined
  }
}

export type Entry = LanePermit | SpillwayError

/** For another mechanism that lets calls through this breaker in a transition of its own. */
export interface BreakerPassage {
  ref: BreakerRef
  /** Names for the largest possible number of probes. */
  probes: readonly string[]
  /** Permits for calls that were let through. */
  passed(view: BreakerView, calls: number, probing: boolean): LanePermit[]
}

/**
 * While the fleet's window holds fewer calls, successes are reported at once: the failures of other
 * pods, which are, would be nearly all that the store knows.
 */
const FEW_CALLS = 100

/** Growth of the number of calls in flight that is announced to the store, in calls and as a share. */
const ANNOUNCED_GROWTH = 1
const ANNOUNCED_SHARE = 0.1
/** Calls that end sooner are not announced. */
const ANNOUNCE_MS = 10

/** Calls in flight that keep the breaker closed are reported again at these intervals. */
const SHORTEST_RECHECK_MS = 25
const LONGEST_RECHECK_MS = 1_000

/**
 * Numbers the reports of this process, of all lanes. A lane that was dropped and created again must
 * not start from 1: the store would take its first reports for old ones.
 */
let reports = 0

export class LaneBreaker {
  readonly lane: string
  readonly #options: LaneBreakerOptions
  readonly ref: BreakerRef
  readonly #replica = new Replica()
  readonly #line: LaneLine
  readonly #reporter: Reporter
  readonly #desk: ProbeDesk
  /** Closed, its ramp over, and not isolated: entering cannot fail. */
  #clear = false
  #generation = 0
  readonly traffic: LaneTraffic
  #announceTimer: Timer | undefined
  readonly #fewCalls: number
  readonly #sliceMs: number
  #state: BreakerStateName = 'closed'
  #endTimer: Timer | undefined
  #recheckTimer: Timer | undefined
  #closed = false
  /** Set until the store has returned the state for the first time. */
  #learning: Promise<void> | undefined

  constructor(options: LaneBreakerOptions) {
    this.#options = options
    this.lane = options.lane
    const { name: guard, lane, spec, clock, flushMs, store, pod } = options
    this.ref = { guard, lane, spec }
    this.#line = new LaneLine(store, this.ref, pod, this.#replica, (view, asked) =>
      this.#hear(view, asked),
    )
    const windowMs = spec.windowUs > 0 ? spec.windowUs / 1_000 : Number.POSITIVE_INFINITY
    this.#sliceMs =
      windowMs === Number.POSITIVE_INFINITY ? windowMs : sliceUsOf(spec.windowUs) / 1_000
    this.traffic = options.traffic ?? new LaneTraffic(options.timeoutMs, windowMs)
    this.traffic.configure(options.timeoutMs, windowMs)
    const fewCalls = Math.min(
      spec.windowCalls || Number.POSITIVE_INFINITY,
      Math.max(FEW_CALLS, 2 * spec.minimumCalls),
    )
    this.#fewCalls = fewCalls
    this.#reporter = new Reporter({
      clock,
      flushMs: () => (this.#replica.view.calls < fewCalls ? 0 : flushMs),
      staleMs: spec.windowUs > 0 ? spec.windowUs / 1_000 : 60_000,
      nextNumber: () => ++reports,
      traffic: () => this.traffic.report(clock.now()),
      send: (report) => this.#line.report(report),
    })
    this.#desk = new ProbeDesk({
      clock,
      pod,
      places: spec.probes,
      maxProbeMs: options.maxProbeMs,
      onOverdue: (probe) => this.#reporter.endProbe(probe, NOTHING),
      take: (probes) => this.#line.probe(probes),
    })
    this.#learn()
  }

  /** Whether entering cannot fail. */
  get isClear(): boolean {
    return this.#clear
  }

  /** Resolves when the store has returned the state; undefined if it has. */
  get learning(): Promise<void> | undefined {
    return this.#learning
  }

  /** Closed, not ramping up, and nothing is in flight: the store has everything there is to know. */
  get isIdle(): boolean {
    const nowMs = this.#options.clock.now()
    const clear = this.#replica.stateAt(nowMs) === 'closed' && nowMs >= this.#rampEndsMs
    return clear && this.hasNothingInFlight
  }

  /** No call, probe or report of this pod is in flight, whatever the state. */
  get hasNothingInFlight(): boolean {
    if (this.#learning !== undefined || this.traffic.running > 0) return false
    return this.#desk.isIdle && this.#reporter.isIdle
  }

  /** Probes of this pod run, whose leases have to be renewed. */
  get hasProbes(): boolean {
    return !this.#desk.isIdle
  }

  /** When the store last answered for this lane. */
  get heardMs(): number {
    return this.#replica.heardMs
  }

  /** Why a call would be refused now, as far as this pod knows. Takes nothing. */
  knownRefusal(): SpillwayError | undefined {
    const nowMs = this.#options.clock.now()
    const state = this.#replica.stateAt(nowMs)
    return state === 'open' || state === 'isolated' ? this.#refusal(state, nowMs) : undefined
  }

  /** A permit, or the error to refuse with; a promise if the store has to be asked. */
  enter(): Entry | Promise<Entry> {
    if (this.#clear) return this.#admit(turnMs(this.#options.clock))
    if (this.#learning !== undefined) return this.#learning.then(() => this.enter())
    return this.#enterWarily(this.#options.clock.now())
  }

  exit(permit: LanePermit, outcome: Outcome): void {
    const kind = KIND[outcome]
    if (permit.id !== undefined) {
      if (this.#desk.end(permit.id)) this.#reporter.endProbe(permit.id, kind)
      return
    }
    // From before the last transition: it says nothing about the present.
    if (permit.generation !== this.#generation) return
    const call = permit as CallPermit
    const nowMs = turnMs(this.#options.clock)
    this.traffic.end(call, outcome, nowMs)
    this.#count(kind, call.repeated, call.repeated ? 0 : this.#slices(nowMs - call.startMs))
  }

  /** The attempt is a retry: its call is counted in the rates by another attempt. */
  repeat(permit: LanePermit): void {
    if (this.#isCurrentCall(permit)) {
      this.traffic.markRepeated(permit, this.#options.clock.now())
    }
  }

  /** The second attempt of a hedged call begins beside the first: in the rates they are one call. */
  hedge(first: LanePermit, second: LanePermit): void {
    if (this.#isCurrentCall(first) && this.#isCurrentCall(second)) {
      this.traffic.hedge(first, second, this.#options.clock.now())
    }
  }

  /** Counts a call that was made without a permit. */
  note(outcome: Outcome): void {
    // Until the state is known, its generation is not.
    if (this.#learning !== undefined) this.#learning.then(() => this.note(outcome))
    else if (this.#state === 'closed') this.#count(KIND[outcome], false, 0)
  }

  get state(): BreakerStateName {
    return this.#replica.stateAt(this.#options.clock.now())
  }

  snapshot(): Omit<BreakerSnapshot, 'selfIsolated'> {
    const nowMs = this.#options.clock.now()
    const { view, heardMs } = this.#replica
    const state = this.#replica.stateAt(nowMs)
    const ends = this.#replica.endsMs(state)
    return {
      name: this.#options.name,
      lane: this.lane,
      state,
      untilMs: ends === undefined ? undefined : Math.max(0, ends - nowMs),
      calls: view.calls,
      failures: view.failures,
      slow: view.slow,
      inFlight: view.inFlight,
      consecutiveFailures: view.consecutive,
      probes: view.probes,
      successes: view.successes,
      ageMs: nowMs - heardMs,
    }
  }

  /** The last known state, and its age. */
  get lastHeard(): { ref: BreakerRef; view: BreakerView; ageMs: number } | undefined {
    const { view, heardMs } = this.#replica
    if (heardMs === Number.NEGATIVE_INFINITY) return undefined
    return { ref: this.ref, view, ageMs: this.#options.clock.now() - heardMs }
  }

  /** The store has pushed a view. */
  hear(view: BreakerView): void {
    this.#hear(view)
  }

  /** Clear, so there are no probes to renew, and the store has said so since then. */
  isInStep(sinceMs: number): boolean {
    return this.#clear && this.#replica.heardMs >= sinceMs
  }

  /** The part of this lane in the periodic synchronisation: reads the state and renews probes. */
  ask(): Question {
    return this.#line.question(this.#desk.running)
  }

  /** Waiting outcomes, for a request that leaves for the store now. */
  ride(): BreakerRide | undefined {
    const ride = this.#reporter.ride()
    return ride === undefined ? undefined : this.#line.along(ride)
  }

  /** The number of calls this pod may begin now, as far as it knows: few after closing. */
  get spare(): number {
    const nowMs = this.#options.clock.now()
    if (this.#clear || this.state !== 'closed' || nowMs >= this.#rampEndsMs) return Infinity
    return Math.max(0, this.#mostAtOnce(nowMs) - this.traffic.running)
  }

  passage(): BreakerPassage {
    const { news } = this.#replica
    const probes = this.#desk.names(this.#options.spec.probes)
    return {
      ref: this.ref,
      probes,
      passed: (view, calls, probing) => {
        this.#hear(view, news)
        const { lane } = this
        const { generation } = view
        if (probing) {
          return probes.slice(0, calls).map((id) => {
            this.#desk.adopt(id)
            return { lane, generation, probe: true, id }
          })
        }
        const nowMs = this.#options.clock.now()
        const ours = generation === this.#generation
        return Array.from({ length: calls }, () =>
          ours ? this.#admit(nowMs) : new CallPermit(lane, generation),
        )
      },
    }
  }

  command(command: BreakerCommand['command']): MaybePromise<void> {
    return this.#line.command(command)
  }

  async flush(): Promise<void> {
    await this.#learning
    await this.#reporter.flush()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#endTimer?.cancel()
    this.#recheckTimer?.cancel()
    this.#announceTimer?.cancel()
    this.#desk.close()
    await this.#learning
    await this.#reporter.close()
  }

  #hear(view: BreakerView, asked?: number): void {
    if (!this.#replica.hear(view, this.#options.clock.now(), asked)) return
    this.#learning = undefined
    if (view.generation !== this.#generation) {
      const wasClosed = this.#state === 'closed'
      this.#generation = view.generation
      this.traffic.startGeneration(view.generation, wasClosed, this.#options.clock.now())
      this.#desk.reopen()
      this.#reporter.begin(view.generation)
    }
    this.#settle()
    this.#recheck(view)
  }

  /** A permit that counts. */
  #admit(nowMs: number): LanePermit {
    const permit = new CallPermit(this.lane, this.#generation)
    this.traffic.begin(permit, nowMs)
    this.#announceLater(nowMs)
    return permit
  }

  /**
   * While the window holds few calls, the store has to know the calls in flight of all pods, not only
   * of those that report failures. The reports of a busy lane carry the number anyway.
   */
  #announceLater(nowMs: number): void {
    if (this.#announceTimer !== undefined || this.#replica.view.calls >= this.#fewCalls) return
    const countsMs = this.traffic.nextCountingMs(nowMs)
    if (countsMs === undefined || this.#closed) return
    const delayMs = Math.max(ANNOUNCE_MS, countsMs - nowMs)
    this.#announceTimer = this.#options.clock.schedule(delayMs, () => this.#announce())
    this.#announceTimer.unref()
  }

  #announce(): void {
    this.#announceTimer = undefined
    const nowMs = this.#options.clock.now()
    const reported = this.traffic.reportedInFlight
    const growth = Math.max(ANNOUNCED_GROWTH, ANNOUNCED_SHARE * reported)
    if (this.traffic.inFlight(nowMs) >= reported + growth) this.#reporter.sendNow()
    this.#announceLater(nowMs)
  }

  #count(kind: number, repeated: boolean, slicesAgo: number): void {
    if (kind === NOTHING) return
    if (kind === FAILURE) this.#reporter.add(repeated ? REPEATED_FAILURE : FAILURE)
    else if (repeated) this.#reporter.addLater(REPEATED_SUCCESS)
    else if (kind === SLOW) this.#reporter.add(SLOW, slicesAgo)
    else this.#reporter.addLater(SUCCESS, slicesAgo)
  }

  /** An age in whole slices of the window. A window of calls has none. */
  #slices(ageMs: number): number {
    return ageMs < this.#sliceMs ? 0 : Math.floor(ageMs / this.#sliceMs)
  }

  /**
   * If only calls in flight keep the breaker closed, no outcome may follow: they may all be hanging.
   * Then the number of those that still count is reported again when it has changed.
   */
  #recheck({ kind, calls, failures, slow, inFlight, consecutive }: BreakerView): void {
    this.#recheckTimer?.cancel()
    this.#recheckTimer = undefined
    const { spec, clock } = this.#options
    const { minimumCalls, failureRate, slowRate } = spec
    if (kind !== 0 || inFlight === 0 || this.#closed) return
    const enough = calls > 0 && calls >= minimumCalls
    const bad =
      (spec.consecutive > 0 && consecutive >= spec.consecutive) ||
      (enough && failureRate > 0 && failures / calls >= failureRate) ||
      (enough && slowRate > 0 && slow / calls >= slowRate)
    if (!bad) return
    const changeMs = (this.traffic.nextChangeMs ?? Number.POSITIVE_INFINITY) - clock.now()
    const delayMs = Math.min(LONGEST_RECHECK_MS, Math.max(SHORTEST_RECHECK_MS, changeMs))
    this.#recheckTimer = clock.schedule(delayMs, () => this.#reporter.sendNow())
    this.#recheckTimer.unref()
  }

  /** A memory store answers synchronously, so that the first call need not wait. */
  #learn(): void {
    const { request, hear } = this.ask()
    let views: BreakerView[] | Promise<BreakerView[]>
    try {
      views = this.#options.store.sync([request])
    } catch {
      return this.#assumeClosed()
    }
    if (!isThenable(views)) return hear(views[0] as BreakerView)
    this.#learning = views.then(
      ([view]) => hear(view as BreakerView),
      () => this.#assumeClosed(),
    )
  }

  /** The store did not answer, which is no reason to refuse. */
  #assumeClosed(): void {
    this.#learning = undefined
    this.#settle()
  }

  #settle(): void {
    const nowMs = this.#options.clock.now()
    const state = this.#replica.stateAt(nowMs)
    this.#clear = state === 'closed' && nowMs >= this.#rampEndsMs
    const before = this.#state
    this.#state = state
    this.#endTimer?.cancel()
    this.#endTimer = undefined
    const endsMs = this.#replica.endsMs(state)
    // Late outcomes are reported after `close`, too; their replies arm no timer.
    if (endsMs !== undefined && !this.#closed) {
      this.#endTimer = this.#options.clock.schedule(endsMs - nowMs, () => this.#settle())
      this.#endTimer.unref()
    }
    if (before !== state) this.#options.onChange(before, state)
  }

  get #rampEndsMs(): number {
    return this.#replica.closedAtMs + this.#options.rampMs
  }

  #enterWarily(nowMs: number, mayAsk = true): Entry | Promise<Entry> {
    const state = this.#replica.stateAt(nowMs)
    if (state === 'half-open') {
      return mayAsk ? this.#askForProbe() : this.#refusal(state, nowMs, explainUnknown)
    }
    if (state !== 'closed') return this.#refusal(state, nowMs)
    this.#clear = nowMs >= this.#rampEndsMs
    if (!this.#clear && this.traffic.running >= this.#mostAtOnce(nowMs)) {
      return this.#refusal('closed', nowMs)
    }
    return this.#admit(nowMs)
  }

  #mostAtOnce(nowMs: number): number {
    const { rampMs, spec } = this.#options
    const closedForMs = nowMs - this.#replica.closedAtMs
    return mostAtOnce({ closedForMs, rampMs, probes: spec.probes, carried: this.traffic.carried })
  }

  #askForProbe(): Entry | Promise<Entry> {
    const answer = this.#desk.ask()
    return isThenable(answer) ? answer.then((each) => this.#onProbe(each)) : this.#onProbe(answer)
  }

  #onProbe(answer: ProbeAnswer): Entry | Promise<Entry> {
    const nowMs = this.#options.clock.now()
    if (answer === 'full') return this.#refusal('half-open', nowMs)
    if (answer === 'unknown') return this.#refusal('half-open', nowMs, explainUnknown)
    // It closed or opened meanwhile; the store is not asked twice for one call.
    if (answer === 'elsewhere') return this.#enterWarily(nowMs, false)
    return { lane: this.lane, generation: answer.generation, probe: true, id: answer.name }
  }

  /** It belongs to the present generation, and is no probe. */
  #isCurrentCall(permit: LanePermit): permit is CallPermit {
    return permit.id === undefined && permit.generation === this.#generation
  }

  #refusal(state: BreakerStateName, nowMs: number, explain?: typeof explainUnknown): SpillwayError {
    return refusalOf(this.#options, this.#replica, state, nowMs, explain)
  }
}
