/**
 * A breaker with all its lanes, kept in step with the fleet: pushed by the store, repaired by asking
 * now and then. Entered before a call and left after it; who calls, and how the end of a call is
 * judged, is somebody else's business: the circuit breaker's, or a guard's.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../core/clock.js'
import { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerStore,
  BreakerView,
  Store,
} from '../../store/port.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { BreakerSnapshot, BreakerStateName } from './api.js'
import { BreakerLanes, type Lane } from './breaker-lanes.js'
import { BreakerNews, type ChangeListener } from './breaker-news.js'
import { InStep } from './in-step.js'
import type { BreakerPassage, Entry, LaneBreaker, LanePermit } from './lane-breaker.js'
import type { BreakerRide } from './lane-line.js'
import { lookAt } from './look.js'
import { type CheckedPolicy, toSpec } from './options.js'
import { OutageBreakers } from './outage-breakers.js'
import { isPermit } from './quorum-lane.js'

export interface FleetBreakerOptions {
  name: string
  store: Store
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  policy: CheckedPolicy
  /** How long an attempt may take, if that is limited. Default: `maxProbeMs`. */
  timeoutMs?: number | undefined
  /** Over a remote store. */
  watch?: StoreWatch | undefined
}

export class FleetBreaker {
  readonly name: string
  readonly #policy: CheckedPolicy
  readonly #spec: BreakerSpec
  readonly #clock: Clock
  readonly #store: Store
  readonly #watch: StoreWatch | undefined
  readonly #news: BreakerNews
  readonly #lanes: BreakerLanes
  /** What somebody has isolated all lanes with. */
  readonly #whole: LaneBreaker | undefined
  readonly #inStep: InStep
  readonly #unwatch: () => void
  #unheed: (() => void) | undefined
  #users = 1
  #closed = false

  constructor({ name, store, pod, clock, policy, timeoutMs, watch }: FleetBreakerOptions) {
    this.name = name
    this.#policy = policy
    this.#spec = toSpec(policy)
    this.#clock = clock
    this.#store = store
    this.#watch = watch
    this.#news = new BreakerNews(name, policy.shadow)
    const breakers = watch === undefined ? store.breakers : this.#overOutages(watch)
    const about = { name, pod, clock, policy, spec: this.#spec, breakers }
    this.#lanes = new BreakerLanes({ ...about, timeoutMs, news: this.#news })
    this.#whole = this.#lanes.whole
    this.#inStep = new InStep({ ...about, lanes: this.#lanes, pods: store.pods, watch })
    this.#unwatch = breakers.watch({
      onView: (guard, lane, view) => {
        if (guard === name) this.#lanes.hear(lane, view)
      },
      onGap: () => this.#inStep.askAll(),
    })
    this.#inStep.begin()
  }

  goesBy(policy: CheckedPolicy): boolean {
    return isDeepStrictEqual(this.#policy, policy)
  }

  /** For a guard that takes the place of another, with the same policy: whoever closes it last closes it. */
  share(): this {
    this.#users++
    return this
  }

  /** Begins with what another one of the same name knows, which goes by another policy. */
  learnFrom(before: FleetBreaker): void {
    for (const { fleet } of before.#lanes.list()) {
      const heard = fleet.lastHeard
      if (heard !== undefined) this.#lanes.hear(fleet.lane, heard.view)
    }
    this.#inStep.askAll()
  }

  /** Nothing stands in the way: entering cannot fail, and needs no trip. */
  isClear(lane: string | undefined): boolean {
    const { fleet, quorum } = this.#lanes.of(lane)
    return (quorum ?? fleet).isClear && this.#whole?.isClear !== false && !this.#barred
  }

  /** A permit, or the error to refuse with; later, if the store has to be asked. */
  enter(lane: string | undefined): Entry | Promise<Entry> {
    if (this.#barred) return barredError(this.name)
    const own = this.#lanes.of(lane)
    if (this.#whole?.isClear === false) {
      const { learning } = this.#whole
      if (learning !== undefined) return learning.then(() => this.enter(lane))
      const error = this.#heldBack()
      if (error !== undefined) return this.#no(own, error)
    }
    const entry = (own.quorum ?? own.fleet).enter()
    if (isThenable(entry)) {
      return entry.then((each) => (isPermit(each) ? each : this.#no(own, each)))
    }
    return isPermit(entry) ? entry : this.#no(own, entry)
  }

  exit(permit: LanePermit, outcome: Outcome): void {
    const { fleet, quorum } = this.#lanes.of(permit.lane)
    ;(quorum ?? fleet).exit(permit, outcome)
  }

  /** The attempt is a retry or a hedge: its call is counted in the rates by another attempt. */
  repeat(permit: LanePermit): void {
    const { fleet, quorum } = this.#lanes.of(permit.lane)
    ;(quorum ?? fleet).repeat(permit)
  }

  /** Waiting outcomes of this lane, for a request that leaves for the store now. */
  ride(lane: string): BreakerRide | undefined {
    return this.#lanes.of(lane).fleet.ride()
  }

  /** For calls that are let through in a step of somebody else's; nothing, if none would be refused. */
  passage(lane: string): BreakerPassage | undefined {
    return this.#policy.shadow ? undefined : this.#lanes.of(lane).fleet.passage()
  }

  /** What the store knows a lane's breaker by; nothing, if it refuses nobody. */
  ref(lane: string): BreakerRef | undefined {
    return this.#policy.shadow ? undefined : this.#lanes.of(lane).fleet.ref
  }

  /** How many calls this pod may begin now, as far as it knows. */
  spare(lane: string): number {
    if (this.#policy.shadow) return Infinity
    if (this.#heldBack() !== undefined) return 0
    const { fleet, quorum } = this.#lanes.of(lane)
    return quorum?.selfIsolated === true && fleet.state === 'closed' ? 0 : fleet.spare
  }

  /** For a call that was made without asking. */
  note(lane: string | undefined, outcome: Outcome): void {
    const { fleet, quorum } = this.#lanes.of(lane)
    ;(quorum ?? fleet).note(outcome)
  }

  /**
   * Why a call would be refused, as far as this pod knows; a half-open one has to be asked. Only a
   * look: nobody hears of it.
   */
  knownRefusal(lane: string | undefined): SpillwayError | undefined {
    if (this.#barred) return barredError(this.name)
    const { fleet, quorum } = this.#lanes.of(lane)
    const breaker = quorum ?? fleet
    if (this.#policy.shadow) return undefined
    return this.#heldBack() ?? (breaker.isClear ? undefined : breaker.knownRefusal())
  }

  /** In shadow: why a call would have been refused. */
  shadowRefusal(lane: string | undefined): SpillwayError | undefined {
    const { fleet, quorum } = this.#lanes.of(lane)
    const breaker = quorum ?? fleet
    return breaker.isClear ? undefined : breaker.knownRefusal()
  }

  /** The same for a call that is now refused, if there is a reason: that is told. */
  refuse(lane: string | undefined): SpillwayError | undefined {
    const error = this.knownRefusal(lane)
    if (error !== undefined) this.#tellRefused(this.#lanes.of(lane))
    return error
  }

  /** It stands in the way of some, or of all: open, half-open, or closed only just now. */
  refuses(lane: string | undefined): boolean {
    return !this.#policy.shadow && !this.isClear(lane)
  }

  state(lane: string | undefined): BreakerStateName {
    return this.#whole?.state === 'isolated' ? 'isolated' : this.#lanes.of(lane).fleet.state
  }

  snapshot(lane: string | undefined): BreakerSnapshot {
    return this.#snapshotOf(this.#lanes.of(lane))
  }

  /** Of all lanes that are in use. */
  snapshots(): BreakerSnapshot[] {
    return this.#lanes.list().map((lane) => this.#snapshotOf(lane))
  }

  /** By the store's own word, whether or not this pod has used them. */
  look(lanes: readonly string[]): Promise<{ lane: string; view: BreakerView }[]> {
    const { per } = this.#policy
    return lookAt(this.#store.breakers, this.name, lanes, { spec: this.#spec, per })
  }

  onChange(listener: ChangeListener): () => void {
    return this.#news.onChange(listener)
  }

  /**
   * Changes of this pod's own breakers, which there are with a quorum: `open` when it isolates itself.
   * They decide only while the fleet's is closed.
   */
  onOwnChange(listener: ChangeListener): () => void {
    return this.#news.onOwnChange(listener)
  }

  async command(lane: string | undefined, command: BreakerCommand['command']): Promise<void> {
    try {
      await this.#lanes.of(lane).fleet.command(command)
    } catch (cause) {
      throw new SpillwayError({
        code: 'STORE_UNAVAILABLE',
        stage: 'breaker',
        scope: 'shared',
        details: { name: this.name },
        explain: ({ name }) => `${name}: the store did not answer`,
        cause,
      })
    }
  }

  /** The store is away, and nobody may call without it. */
  get #barred(): boolean {
    return this.#watch?.reachable === false && this.#policy.outage === 'closed'
  }

  #overOutages(watch: StoreWatch): BreakerStore {
    const { outage } = this.#policy
    const breakers = new OutageBreakers(this.#store.breakers, watch, this.#clock, outage)
    let reachable = watch.reachable
    this.#unheed = watch.onChange(() => {
      if (watch.reachable === reachable) return
      reachable = watch.reachable
      if (!reachable) {
        breakers.begin()
        for (const each of this.#lanes.fleets()) {
          const heard = each.lastHeard
          if (heard !== undefined) breakers.adopt(heard.ref, heard.view, heard.ageMs)
        }
      }
      // Whoever is asked from now on says how things are.
      this.#inStep.askAll()
    })
    return breakers
  }

  flush(): Promise<void> {
    return this.#lanes.flush()
  }

  get closed(): boolean {
    return this.#closed
  }

  async close(): Promise<void> {
    if (this.#closed || --this.#users > 0) return
    this.#closed = true
    this.#inStep.stop()
    this.#unwatch()
    this.#unheed?.()
    await this.#lanes.close()
    await this.#inStep.leave()
  }

  /** Somebody has isolated all lanes. */
  #heldBack(): SpillwayError | undefined {
    const whole = this.#whole
    if (whole === undefined || whole.isClear || whole.state !== 'isolated') return undefined
    return whole.knownRefusal()
  }

  #snapshotOf({ fleet, quorum }: Lane): BreakerSnapshot {
    const own = { ...fleet.snapshot(), selfIsolated: quorum?.selfIsolated ?? false }
    const whole = this.#whole
    if (whole?.state !== 'isolated') return own
    const untilMs = Math.max(whole.snapshot().untilMs ?? 0, own.untilMs ?? 0)
    return { ...own, state: 'isolated', untilMs }
  }

  /** In shadow mode a refusal is only told. */
  #no(lane: Lane, error: SpillwayError): Entry {
    this.#tellRefused(lane)
    return this.#policy.shadow ? fleetless(lane.fleet.lane) : error
  }

  #tellRefused({ fleet }: Lane): void {
    this.#news.refused(fleet)
  }
}

function barredError(guard: string): SpillwayError {
  return new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage: 'breaker',
    scope: 'shared',
    details: { name: guard, outage: 'closed' },
    explain: ({ name }) =>
      `${name}: the store is away, and the breaker is closed to calls without it`,
  })
}

/** Of a generation that never is: whatever the call's outcome, it changes nothing. */
function fleetless(lane: string): LanePermit {
  return { lane, generation: -1, probe: false, id: undefined }
}
