/**
 * The breaker of one lane, as this pod sees it. A call that enters a closed breaker, and one that an open
 * breaker refuses, are decided in memory. Only probes of a half-open breaker need a round trip to the store.
 */
import type { Scope, SpillwayError } from '../../../core/errors.js'
import type { Outcome } from '../../../core/outcome.js'
import { isThenable } from '../../../core/thenable.js'
import { type Clock, type Timer, turnMs } from '../../../core/time/clock.js'
import type { BreakerSpec } from '../../../store/breaker-spec.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerStore,
  BreakerView,
  MaybePromise,
} from '../../../store/port.js'
import type { BreakerPermit, BreakerSnapshot, BreakerStateName } from '../api.js'
import { BreakerClient, type PiggybackedReport, type StateRequest } from './breaker-client.js'
import type { BreakerEntry } from './breaker-permit.js'
import { InFlightReports } from './in-flight-reports.js'
import { CallPermit, LaneTraffic } from './lane-traffic.js'
import { type ProbeGrant, ProbePermits } from './probe-permits.js'
import { mostAtOnce } from './ramp.js'
import { explainUnknown, refusalOf } from './refusal.js'
import { Replica } from './replica.js'
import { createReporter, type Reporter } from './reporter.js'

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

/** For a mechanism that grants calls of this breaker in its own transition: the job queue. */
export interface BreakerRequestPart {
  ref: BreakerRef
  /** Ids for the largest possible number of probes. */
  probes: readonly string[]
  /** Permits for the calls that were granted. */
  passed(view: BreakerView, calls: number, probing: boolean): BreakerPermit[]
}

export class LaneBreaker {
  readonly lane: string
  readonly ref: BreakerRef
  readonly traffic: LaneTraffic
  readonly #options: LaneBreakerOptions
  readonly #replica = new Replica()
  readonly #client: BreakerClient
  readonly #reporter: Reporter
  readonly #inFlightReports: InFlightReports
  readonly #probes: ProbePermits
  /** Closed, its ramp over, and not isolated: entering cannot fail. Changed here only. */
  isClear = false
  #generation = 0
  #state: BreakerStateName = 'closed'
  #endTimer: Timer | undefined
  #closed = false
  /** Set until the store has returned the state for the first time. */
  #firstState: Promise<void> | undefined

  constructor(options: LaneBreakerOptions) {
    this.#options = options
    this.lane = options.lane
    const { name: guard, lane, spec, clock, flushMs, store, pod, timeoutMs } = options
    this.ref = { guard, lane, spec }
    this.#client = new BreakerClient(store, this.ref, pod, this.#replica, (view, requested) =>
      this.receive(view, requested),
    )
    const windowMs = spec.windowUs > 0 ? spec.windowUs / 1_000 : Number.POSITIVE_INFINITY
    this.traffic = options.traffic ?? new LaneTraffic(timeoutMs, windowMs)
    this.traffic.configure(timeoutMs, windowMs)
    this.#reporter = createReporter({
      clock,
      spec,
      flushMs,
      view: () => this.#replica.view,
      traffic: () => this.traffic.report(clock.now()),
      send: (report) => this.#client.report(report),
    })
    const sendNow = () => this.#reporter.sendNow()
    this.#inFlightReports = new InFlightReports({ clock, spec, traffic: this.traffic, sendNow })
    this.#probes = new ProbePermits({
      clock,
      pod,
      probes: spec.probes,
      maxProbeMs: options.maxProbeMs,
      onOverdue: (id) => this.#reporter.endProbe(id, 'ignored'),
      request: (ids) => this.#client.requestProbes(ids),
    })
    this.#readFirstState()
  }

  /** Resolves when the store has returned the state; undefined if it has. */
  get firstState(): Promise<void> | undefined {
    return this.#firstState
  }

  /** Closed, not ramping up, and nothing is in flight: the store knows everything about this lane. */
  get isIdle(): boolean {
    const nowMs = this.#options.clock.now()
    const clear = this.#replica.stateAt(nowMs) === 'closed' && nowMs >= this.#rampEndsMs
    return clear && this.hasNothingInFlight
  }

  /** No call, probe or report of this pod is in flight, in any state. */
  get hasNothingInFlight(): boolean {
    if (this.#firstState !== undefined || this.traffic.running > 0) return false
    return this.#probes.isIdle && this.#reporter.isIdle
  }

  /** Probes of this pod run, whose leases have to be renewed. */
  get hasProbes(): boolean {
    return !this.#probes.isIdle
  }

  /** When the store last returned or published the state of this lane. */
  get receivedMs(): number {
    return this.#replica.receivedMs
  }

  get state(): BreakerStateName {
    return this.#replica.stateAt(this.#options.clock.now())
  }

  /** The last known state, and its age. */
  get lastReceived(): { ref: BreakerRef; view: BreakerView; ageMs: number } | undefined {
    const { view, receivedMs } = this.#replica
    if (receivedMs === Number.NEGATIVE_INFINITY) return undefined
    return { ref: this.ref, view, ageMs: this.#options.clock.now() - receivedMs }
  }

  /** Why a call would be refused now, as far as this pod knows. Takes nothing. */
  knownRefusal(): SpillwayError | undefined {
    const nowMs = this.#options.clock.now()
    const state = this.#replica.stateAt(nowMs)
    return state === 'open' || state === 'isolated' ? this.#refusal(state, nowMs) : undefined
  }

  /** A permit, or the error to refuse with; a promise if the store has to be asked. */
  enter(): BreakerEntry | Promise<BreakerEntry> {
    if (this.isClear) return this.#admit(turnMs(this.#options.clock))
    if (this.#firstState !== undefined) return this.#firstState.then(() => this.enter())
    return this.#enterByState(this.#options.clock.now())
  }

  exit(permit: BreakerPermit, outcome: Outcome): void {
    if (permit.probeId !== undefined) {
      if (this.#probes.end(permit.probeId)) this.#reporter.endProbe(permit.probeId, outcome)
      return
    }
    // A call that started before the last transition does not describe the current state.
    if (permit.generation !== this.#generation) return
    const call = permit as CallPermit
    const ageMs = this.traffic.end(call, outcome, turnMs(this.#options.clock))
    this.#reporter.ended(outcome, call.repeated, ageMs)
  }

  /** The attempt is a retry: its call is counted in the rates by another attempt. */
  markRepeated(permit: BreakerPermit): void {
    if (this.#isCurrentCall(permit)) {
      this.traffic.markRepeated(permit, this.#options.clock.now())
    }
  }

  /** The downstream has answered, so it does not hang, although the answer does not count in the rates. */
  markAnswered(permit: BreakerPermit): void {
    if (this.#isCurrentCall(permit)) permit.answered = true
  }

  /** The second attempt of a hedged call begins beside the first: in the rates they are one call. */
  hedge(first: BreakerPermit, second: BreakerPermit): void {
    if (this.#isCurrentCall(first) && this.#isCurrentCall(second)) {
      this.traffic.hedge(first, second, this.#options.clock.now())
    }
  }

  /** Counts a call that was made without a permit. */
  record(outcome: Outcome): void {
    // Until the state is known, its generation is not.
    if (this.#firstState !== undefined) this.#firstState.then(() => this.record(outcome))
    else if (this.#state === 'closed') this.#reporter.ended(outcome, false, 0)
  }

  snapshot(): Omit<BreakerSnapshot, 'selfIsolated'> {
    const nowMs = this.#options.clock.now()
    const { view, receivedMs } = this.#replica
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
      ageMs: nowMs - receivedMs,
    }
  }

  /** The store has published a view, or returned it. `requested`: see `replica.ts`. */
  receive(view: BreakerView, requested?: number): void {
    const nowMs = this.#options.clock.now()
    if (!this.#replica.receive(view, nowMs, requested)) return
    this.#firstState = undefined
    if (view.generation !== this.#generation) {
      this.#generation = view.generation
      this.traffic.startGeneration(view.generation, this.#state === 'closed', nowMs)
      this.#probes.retryNow()
      this.#reporter.begin(view.generation)
    }
    this.#updateState()
    this.#inFlightReports.stateChanged(view)
  }

  /** Whether no sync is needed: there are no probes to renew, and the store has returned the state since `sinceMs`. */
  isInSync(sinceMs: number): boolean {
    return this.isClear && this.#replica.receivedMs >= sinceMs
  }

  /** The part of this lane in the periodic synchronisation: reads the state and renews probes. */
  stateRequest(): StateRequest {
    return this.#client.stateRequest(this.#probes.running)
  }

  /** Waiting outcomes, for a request that leaves for the store now. */
  piggybackReport(): PiggybackedReport | undefined {
    const pending = this.#reporter.piggyback()
    return pending === undefined ? undefined : this.#client.piggyback(pending)
  }

  /** The number of calls this pod may begin now, as far as it knows: few after closing. */
  get startable(): number {
    const nowMs = this.#options.clock.now()
    if (this.isClear || this.state !== 'closed' || nowMs >= this.#rampEndsMs) return Infinity
    return Math.max(0, this.#mostAtOnce(nowMs) - this.traffic.running)
  }

  requestPart(): BreakerRequestPart {
    const { changes } = this.#replica
    const probes = this.#probes.createIds(this.#options.spec.probes)
    return {
      ref: this.ref,
      probes,
      passed: (view, calls, probing) => {
        this.receive(view, changes)
        const { generation } = view
        if (probing) return probes.slice(0, calls).map((id) => this.#probePermit(id, generation))
        const nowMs = this.#options.clock.now()
        const current = generation === this.#generation
        return Array.from({ length: calls }, () =>
          current ? this.#admit(nowMs) : new CallPermit(this.lane, generation),
        )
      },
    }
  }

  command(command: BreakerCommand['command']): MaybePromise<void> {
    return this.#client.command(command)
  }

  /** Opens it for a reason that a call has found, unless the state has changed since this pod last knew it. */
  tripFound(forUs: number): MaybePromise<void> {
    return this.#client.command({ kind: 'trip', forUs, generation: this.#generation })
  }

  async flush(): Promise<void> {
    await this.#firstState
    await this.#reporter.flush()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#endTimer?.cancel()
    this.#inFlightReports.stopTimers()
    this.#probes.close()
    await this.#firstState
    await this.#reporter.close()
  }

  /** A permit for a call that counts. */
  #admit(nowMs: number): CallPermit {
    const permit = new CallPermit(this.lane, this.#generation)
    this.traffic.begin(permit, nowMs)
    if (this.#inFlightReports.fewCalls) this.#inFlightReports.callBegan(nowMs)
    return permit
  }

  #probePermit(id: string, generation: number): BreakerPermit {
    this.#probes.begin(id)
    return { lane: this.lane, generation, probe: true, probeId: id }
  }

  /** A memory store answers synchronously, so the first call does not wait. */
  #readFirstState(): void {
    const { request, receive } = this.stateRequest()
    let views: BreakerView[] | Promise<BreakerView[]>
    try {
      views = this.#options.store.sync([request])
    } catch {
      return this.#assumeClosed()
    }
    if (!isThenable(views)) return receive(views[0] as BreakerView)
    this.#firstState = views.then(
      ([view]) => receive(view as BreakerView),
      () => this.#assumeClosed(),
    )
  }

  /** If the store does not answer, the breaker starts closed. */
  #assumeClosed(): void {
    this.#firstState = undefined
    this.#updateState()
  }

  #updateState(): void {
    const nowMs = this.#options.clock.now()
    const state = this.#replica.stateAt(nowMs)
    this.isClear = state === 'closed' && nowMs >= this.#rampEndsMs
    const before = this.#state
    this.#state = state
    this.#endTimer?.cancel()
    this.#endTimer = undefined
    const endsMs = this.#replica.endsMs(state)
    // Late outcomes are reported after `close`, too; their replies start no timer.
    if (endsMs !== undefined && !this.#closed) {
      this.#endTimer = this.#options.clock.schedule(endsMs - nowMs, () => this.#updateState())
      this.#endTimer.unref()
    }
    if (before !== state) this.#options.onChange(before, state)
  }

  get #rampEndsMs(): number {
    return this.#replica.closedAtMs + this.#options.rampMs
  }

  #enterByState(nowMs: number, mayProbe = true): BreakerEntry | Promise<BreakerEntry> {
    const state = this.#replica.stateAt(nowMs)
    if (state === 'half-open') {
      return mayProbe ? this.#enterAsProbe() : this.#refusal(state, nowMs, explainUnknown)
    }
    if (state !== 'closed') return this.#refusal(state, nowMs)
    this.isClear = nowMs >= this.#rampEndsMs
    if (!this.isClear && this.traffic.running >= this.#mostAtOnce(nowMs)) {
      return this.#refusal('closed', nowMs)
    }
    return this.#admit(nowMs)
  }

  #mostAtOnce(nowMs: number): number {
    const { rampMs, spec } = this.#options
    const closedForMs = nowMs - this.#replica.closedAtMs
    return mostAtOnce({ closedForMs, rampMs, probes: spec.probes, carried: this.traffic.carried })
  }

  #enterAsProbe(): BreakerEntry | Promise<BreakerEntry> {
    const grant = this.#probes.take()
    return isThenable(grant) ? grant.then((each) => this.#onGrant(each)) : this.#onGrant(grant)
  }

  #onGrant(grant: ProbeGrant): BreakerEntry | Promise<BreakerEntry> {
    const nowMs = this.#options.clock.now()
    if (grant === 'full') return this.#refusal('half-open', nowMs)
    if (grant === 'unknown') return this.#refusal('half-open', nowMs, explainUnknown)
    // It closed or opened meanwhile; the store is not asked twice for one call.
    if (grant === 'changed') return this.#enterByState(nowMs, false)
    return { lane: this.lane, generation: grant.generation, probe: true, probeId: grant.id }
  }

  /** It belongs to the present generation, and is no probe. */
  #isCurrentCall(permit: BreakerPermit): permit is CallPermit {
    return permit.probeId === undefined && permit.generation === this.#generation
  }

  #refusal(state: BreakerStateName, nowMs: number, explain?: typeof explainUnknown): SpillwayError {
    return refusalOf(this.#options, this.#replica, state, nowMs, explain)
  }
}
