/**
 * A breaker with all its lanes, kept in step with the fleet: the store pushes changes, and a regular sync
 * repairs lost messages. A call enters it and leaves it with an outcome. Running and judging calls is up to
 * the circuit breaker or the guard around it.
 */
import { isDeepStrictEqual } from 'node:util'
import { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerStore,
  BreakerView,
  Store,
} from '../../store/port.js'
import { ALL_LANES, DEFAULT_LANE } from '../default-lane.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
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
  /** The guard's lanes: names of calls are resolved by it. Default: lanes of its own. */
  lanes?: LaneRegistry | undefined
}

export class FleetBreaker {
  readonly name: string
  readonly #policy: CheckedPolicy
  readonly #spec: BreakerSpec
  readonly #clock: Clock
  readonly #store: Store
  readonly #watch: StoreWatch | undefined
  readonly #news: BreakerNews
  /** The store's breakers, or this pod's own while the store is unreachable. */
  readonly #breakers: BreakerStore
  readonly #lanes: BreakerLanes
  /** What somebody has isolated all lanes with. */
  readonly #whole: LaneBreaker | undefined
  readonly #inStep: InStep
  readonly #unwatch: () => void
  #unheed: (() => void) | undefined
  #users = 1
  #closed = false

  constructor(options: FleetBreakerOptions) {
    const { name, store, pod, clock, policy, timeoutMs, watch } = options
    this.name = name
    this.#policy = policy
    this.#spec = toSpec(policy)
    this.#clock = clock
    this.#store = store
    this.#watch = watch
    this.#news = new BreakerNews(name, policy.shadow)
    const breakers = watch === undefined ? store.breakers : this.#overOutages(watch)
    const about = { name, pod, clock, policy, spec: this.#spec, breakers }
    const registry = options.lanes ?? new LaneRegistry({ name, clock })
    this.#breakers = breakers
    this.#lanes = new BreakerLanes({ ...about, timeoutMs, news: this.#news, lanes: registry })
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
    this.#lanes.inheritTraffic(before.#lanes)
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
    if (isPermit(entry)) return entry
    if (!isThenable(entry)) return this.#no(own, entry)
    return entry.then((each) => (isPermit(each) ? each : this.#no(own, each)))
  }

  exit(permit: LanePermit, outcome: Outcome): void {
    const own = this.#lanes.known(permit.lane)
    // A lane is dropped only after its last call, or when the generation of its permits is over.
    if (own !== undefined) (own.quorum ?? own.fleet).exit(permit, outcome)
  }

  /** The attempt is a retry: its call is counted in the rates by another attempt. */
  repeat(permit: LanePermit): void {
    const { fleet, quorum } = this.#lanes.of(permit.lane)
    ;(quorum ?? fleet).repeat(permit)
  }

  /** The second attempt of a hedged call begins on the same lane: in the rates both are one call. */
  hedge(first: LanePermit, second: LanePermit): void {
    if (first.lane !== second.lane) return
    const { fleet, quorum } = this.#lanes.of(first.lane)
    ;(quorum ?? fleet).hedge(first, second)
  }

  /** Waiting outcomes of this lane, for a request that leaves for the store now. */
  ride(lane: string): BreakerRide | undefined {
    return this.#lanes.known(lane)?.fleet.ride()
  }

  /** For calls that are let through in a step of somebody else's; nothing, if none would be refused. */
  passage(lane: string): BreakerPassage | undefined {
    return this.#policy.shadow ? undefined : this.#lanes.of(lane).fleet.passage()
  }

  /** What the store knows a lane's breaker by; nothing, if it refuses nobody. */
  ref(lane: string): BreakerRef | undefined {
    return this.#policy.shadow ? undefined : this.#refOf(lane)
  }

  /** How many calls this pod may begin now, as far as it knows. */
  spare(lane: string): number {
    if (this.#policy.shadow) return Infinity
    if (this.#heldBack() !== undefined) return 0
    const own = this.#lanes.known(lane)
    if (own === undefined) return Infinity
    const { fleet, quorum } = own
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
    if (this.#policy.shadow) return undefined
    return this.#heldBack() ?? this.#refusalOf(lane)
  }

  /** In shadow: why a call would have been refused. */
  shadowRefusal(lane: string | undefined): SpillwayError | undefined {
    return this.#refusalOf(lane)
  }

  /** The same for a call that is now refused, if there is a reason: that is told. */
  refuse(lane: string | undefined): SpillwayError | undefined {
    const error = this.knownRefusal(lane)
    if (error === undefined) return undefined
    const own = this.#lanes.known(lane)
    // Its lane does not exist here: all lanes are isolated.
    this.#news.refused(own?.fleet ?? { lane: lane ?? DEFAULT_LANE, state: 'isolated' })
    return error
  }

  /** It stands in the way of some, or of all: open, half-open, or closed only just now. */
  refuses(lane: string | undefined): boolean {
    if (this.#policy.shadow) return false
    if (this.#whole?.isClear === false || this.#barred) return true
    const own = this.#lanes.known(lane)
    return own !== undefined && !(own.quorum ?? own.fleet).isClear
  }

  /** Reading creates no lane: one that does not exist is closed. */
  state(lane: string | undefined): BreakerStateName {
    if (this.#whole?.state === 'isolated') return 'isolated'
    return this.#lanes.describable(lane)?.fleet.state ?? 'closed'
  }

  snapshot(lane: string | undefined): BreakerSnapshot {
    return this.#snapshotOf(this.#lanes.describable(lane), lane)
  }

  /** Of all lanes that are in use. */
  snapshots(): BreakerSnapshot[] {
    return this.#lanes.list().map((lane) => this.#snapshotOf(lane, lane.fleet.lane))
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
      const own = this.#lanes.known(lane)
      if (own !== undefined) return await own.fleet.command(command)
      // Commanding a lane does not create it, unless the command isolates or opens it.
      const ref = this.#refOf(lane)
      this.#lanes.hear(ref.lane, await this.#breakers.command({ ...ref, command }))
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

  #refOf(lane: string = DEFAULT_LANE): BreakerRef {
    const known = this.#policy.per === 'vendor' ? ALL_LANES : lane
    return { guard: this.name, lane: known, spec: this.#spec }
  }

  #refusalOf(lane: string | undefined): SpillwayError | undefined {
    const own = this.#lanes.known(lane)
    const breaker = own?.quorum ?? own?.fleet
    return breaker?.isClear === false ? breaker.knownRefusal() : undefined
  }

  #snapshotOf(lane: Lane | undefined, name: string | undefined): BreakerSnapshot {
    const own =
      lane === undefined
        ? unknownLane(this.name, this.#refOf(name).lane)
        : { ...lane.fleet.snapshot(), selfIsolated: lane.quorum?.selfIsolated ?? false }
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

/** How a lane that does not exist here looks to a reader. */
function unknownLane(name: string, lane: string): BreakerSnapshot {
  return {
    name,
    lane,
    state: 'closed',
    untilMs: undefined,
    calls: 0,
    failures: 0,
    slow: 0,
    inFlight: 0,
    consecutiveFailures: 0,
    probes: 0,
    successes: 0,
    selfIsolated: false,
    ageMs: Number.POSITIVE_INFINITY,
  }
}

/** Of a generation that never is: whatever the call's outcome, it changes nothing. */
function fleetless(lane: string): LanePermit {
  return { lane, generation: -1, probe: false, id: undefined }
}
