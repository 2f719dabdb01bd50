/**
 * The breaker of one lane, as this pod sees it. While nothing stands in the way, entering is a look
 * at a flag; refusing needs no trip either; only a half-open breaker has to be asked for a probe.
 */
import type { Clock, Timer } from '../../core/clock.js'
import type { Scope, SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import { type BreakerSpec, FAILURE, NOTHING, SLOW, SUCCESS } from '../../store/breaker-spec.js'
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
import { type ProbeAnswer, ProbeDesk } from './probe-desk.js'
import { mostAtOnce } from './ramp.js'
import { explainUnknown } from './refusal-words.js'
import { Replica } from './replica.js'
import { Reporter } from './reporter.js'

export interface LaneBreakerOptions {
  name: string
  lane: string
  /** This pod, and no other that ever was. */
  pod: string
  store: BreakerStore
  clock: Clock
  spec: BreakerSpec
  flushMs: number
  rampMs: number
  maxProbeMs: number
  /** Whose state decides: that of the fleet, or of this pod alone. */
  scope: Scope
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

export type Entry = LanePermit | SpillwayError

/** What somebody says who takes calls past this breaker in a step of its own, and hears what came back. */
export interface BreakerPassage {
  ref: BreakerRef
  /** Names for as many probes as there may be. */
  probes: readonly string[]
  /** So many calls were let through: permits for them. */
  passed(view: BreakerView, calls: number, probing: boolean): LanePermit[]
}

/**
 * As long as the fleet's window holds no more than this, successes do not wait: failures of other pods
 * do not take ours along, and would be nearly all that is known.
 */
const FEW_CALLS = 100

/**
 * Reports of this process have numbers that grow, whichever lane they are about: a store that has heard
 * of a lane would take the first report of one that was dropped and made anew for an old one.
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
  /** Nothing stands in the way: closed, for long enough, and nobody isolated it. */
  #clear = false
  /** All calls of a generation share one. */
  #permit: LanePermit
  /** Calls under way that carry it. */
  #running = 0
  #state: BreakerStateName = 'closed'
  #endTimer: Timer | undefined
  #closed = false
  /** Set while the store has not yet said how things are. */
  #learning: Promise<void> | undefined

  constructor(options: LaneBreakerOptions) {
    this.#options = options
    this.lane = options.lane
    const { name: guard, lane, spec, clock, flushMs, store, pod } = options
    this.ref = { guard, lane, spec }
    this.#line = new LaneLine(store, this.ref, pod, this.#replica, (view, asked) =>
      this.#hear(view, asked),
    )
    this.#permit = { lane, generation: 0, probe: false, id: undefined }
    const fewCalls = Math.min(
      spec.windowCalls || Number.POSITIVE_INFINITY,
      Math.max(FEW_CALLS, 2 * spec.minimumCalls),
    )
    this.#reporter = new Reporter({
      clock,
      flushMs: () => (this.#replica.view.calls < fewCalls ? 0 : flushMs),
      staleMs: spec.windowUs > 0 ? spec.windowUs / 1_000 : 60_000,
      nextNumber: () => ++reports,
      send: (report) => this.#line.report(report),
    })
    this.#desk = new ProbeDesk({
      clock,
      pod,
      places: spec.probes,
      take: (probes) => this.#line.probe(probes),
    })
    this.#learn()
  }

  /** Nothing stands in the way: entering cannot fail. */
  get isClear(): boolean {
    return this.#clear
  }

  /** Resolves when the store has said how things are; nothing, if it has. */
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
    if (this.#learning !== undefined || this.#running > 0) return false
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

  /** Why a call would be refused now, if that needs no asking. Takes nothing. */
  knownRefusal(): SpillwayError | undefined {
    const nowMs = this.#options.clock.now()
    const state = this.#replica.stateAt(nowMs)
    return state === 'open' || state === 'isolated' ? this.#refusal(state, nowMs) : undefined
  }

  /** A permit, or the error to refuse with; later, if the store has to be asked. */
  enter(): Entry | Promise<Entry> {
    if (this.#clear) {
      this.#running++
      return this.#permit
    }
    if (this.#learning !== undefined) return this.#learning.then(() => this.enter())
    return this.#enterWarily(this.#options.clock.now())
  }

  exit(permit: LanePermit, outcome: Outcome): void {
    const kind = KIND[outcome]
    if (permit.id !== undefined) {
      if (this.#desk.end(permit.id)) this.#reporter.endProbe(permit.id, kind)
      return
    }
    // From before the last transition: it says nothing about how things are now.
    if (permit.generation !== this.#permit.generation) return
    if (this.#running > 0) this.#running--
    this.#count(kind)
  }

  /** For a call that was made without asking. */
  note(outcome: Outcome): void {
    // Until we know how things are, nobody can say which generation it belongs to.
    if (this.#learning !== undefined) this.#learning.then(() => this.note(outcome))
    else if (this.#state === 'closed') this.#count(KIND[outcome])
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
      consecutiveFailures: view.consecutive,
      probes: view.probes,
      successes: view.successes,
      ageMs: nowMs - heardMs,
    }
  }

  /** How the breaker stood when it was last heard of, and how long ago that was. */
  get lastHeard(): { ref: BreakerRef; view: BreakerView; ageMs: number } | undefined {
    const { view, heardMs } = this.#replica
    if (heardMs === Number.NEGATIVE_INFINITY) return undefined
    return { ref: this.ref, view, ageMs: this.#options.clock.now() - heardMs }
  }

  /** What the store says without having been asked. */
  hear(view: BreakerView): void {
    this.#hear(view)
  }

  /** Nothing stands in the way, so there are no probes to renew, and the store has said so since then. */
  isInStep(sinceMs: number): boolean {
    return this.#clear && this.#replica.heardMs >= sinceMs
  }

  /** What this lane wants to know and to renew, now and then; and who hears the answer. */
  ask(): Question {
    return this.#line.question(this.#desk.youngerThan(this.#options.maxProbeMs))
  }

  /** Outcomes that wait, for somebody who leaves for the store now. */
  ride(): BreakerRide | undefined {
    const ride = this.#reporter.ride()
    return ride === undefined ? undefined : this.#line.along(ride)
  }

  /** How many calls this pod may begin now, as far as it knows: few, when it has just closed. */
  get spare(): number {
    const nowMs = this.#options.clock.now()
    if (this.#clear || this.state !== 'closed' || nowMs >= this.#rampEndsMs) return Infinity
    return Math.max(0, this.#mostAtOnce(nowMs) - this.#running)
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
        const ours = generation === this.#permit.generation
        if (ours) this.#running += calls
        const permit = ours ? this.#permit : { lane, generation, probe: false, id: undefined }
        return new Array(calls).fill(permit)
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
    await this.#learning
    await this.#reporter.close()
  }

  #hear(view: BreakerView, asked?: number): void {
    if (!this.#replica.hear(view, this.#options.clock.now(), asked)) return
    this.#learning = undefined
    if (view.generation !== this.#permit.generation) {
      const { generation } = view
      this.#permit = { lane: this.lane, generation, probe: false, id: undefined }
      this.#running = 0
      this.#desk.reopen()
      this.#reporter.begin(generation)
    }
    this.#settle()
  }

  #count(kind: number): void {
    if (kind === SUCCESS) this.#reporter.addSuccess()
    else if (kind !== NOTHING) this.#reporter.add(kind)
  }

  /** A store that answers at once is asked at once; nobody has to wait for a remote one twice. */
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

  /** Nobody can say: no reason to refuse. */
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
    // Late outcomes still come in after the end; their replies arm nothing any more.
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
    if (!this.#clear && this.#running >= this.#mostAtOnce(nowMs)) {
      return this.#refusal('closed', nowMs)
    }
    this.#running++
    return this.#permit
  }

  #mostAtOnce(nowMs: number): number {
    const { rampMs, spec } = this.#options
    return mostAtOnce(nowMs - this.#replica.closedAtMs, rampMs, spec.probes)
  }

  #askForProbe(): Entry | Promise<Entry> {
    const answer = this.#desk.ask()
    return isThenable(answer) ? answer.then((each) => this.#onProbe(each)) : this.#onProbe(answer)
  }

  #onProbe(answer: ProbeAnswer): Entry | Promise<Entry> {
    const nowMs = this.#options.clock.now()
    if (answer === 'full') return this.#refusal('half-open', nowMs)
    if (answer === 'unknown') return this.#refusal('half-open', nowMs, explainUnknown)
    // It closed or opened meanwhile; nobody asks twice for one call.
    if (answer === 'elsewhere') return this.#enterWarily(nowMs, false)
    return { lane: this.lane, generation: answer.generation, probe: true, id: answer.name }
  }

  #refusal(state: BreakerStateName, nowMs: number, explain?: typeof explainUnknown): SpillwayError {
    return refusalOf(this.#options, this.#replica, state, nowMs, explain)
  }
}
