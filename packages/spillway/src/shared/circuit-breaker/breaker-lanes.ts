/**
 * The circuit breaker of one downstream, with a breaker for each lane. A call enters it and exits with an
 * outcome. Running calls and judging their outcomes is up to the circuit breaker or the guard that uses it.
 */
import { isDeepStrictEqual } from 'node:util'
import { refusedByOutageRule, type SpillwayError, storeUnavailable } from '../../core/errors.js'
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
import { ALL_LANES, DEFAULT_LANE } from '../lanes/lane-names.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { BreakerPermit, BreakerSnapshot, BreakerStateName } from './api.js'
import { ChangeEvents, type ChangeListener } from './change-events.js'
import type { PiggybackedReport } from './lane/breaker-client.js'
import { type BreakerEntry, isBreakerPermit, uncountedPermit } from './lane/breaker-permit.js'
import type { BreakerRequestPart } from './lane/lane-breaker.js'
import { type Lane, LaneSet } from './lane-set.js'
import { type CheckedPolicy, toSpec } from './options.js'
import { OutageBreakers } from './outage-breakers.js'
import { QuorumBreaker } from './quorum.js'
import { readStates } from './read-states.js'
import { SyncLoop } from './sync-loop.js'

export interface BreakerLanesOptions {
  name: string
  store: Store
  /** The id of this pod's incarnation. */
  pod: string
  clock: Clock
  policy: CheckedPolicy
  /** How long an attempt may take, if that is limited. Default: `maxProbeMs`. */
  timeoutMs?: number | undefined
  /** Watches a remote store. */
  watch?: StoreWatch | undefined
  /** The guard's lanes, which resolve the names of calls. Default: lanes of its own. */
  lanes?: LaneRegistry | undefined
  /** Emits no events, because its owner emits others. Default: false. */
  silent?: boolean
}

export class BreakerLanes {
  readonly name: string
  readonly #policy: CheckedPolicy
  readonly #spec: BreakerSpec
  readonly #clock: Clock
  readonly #store: Store
  /** Set if the outage rule refuses calls while this store is unreachable. */
  readonly #refusingWatch: StoreWatch | undefined
  readonly #events: ChangeEvents
  /** The store's breakers, or this pod's own while the store is unreachable. */
  readonly #breakers: BreakerStore
  readonly #registry: LaneRegistry
  readonly #lanes: LaneSet
  readonly #syncLoop: SyncLoop
  readonly #stopWatching: () => void
  #stopOutages: (() => void) | undefined
  /** Guards that use it. */
  #users = 1
  #closed = false

  constructor(options: BreakerLanesOptions) {
    const { name, store, pod, clock, policy, timeoutMs, watch } = options
    this.name = name
    this.#policy = policy
    this.#spec = toSpec(policy)
    this.#clock = clock
    this.#store = store
    this.#refusingWatch = policy.outage === 'refuse' ? watch : undefined
    this.#events = new ChangeEvents(name, policy.shadow, options.silent)
    const breakers = watch === undefined ? store.breakers : this.#withOutages(watch)
    const common = { name, pod, clock, policy, spec: this.#spec, breakers }
    const lanes = options.lanes ?? new LaneRegistry({ name, clock })
    this.#registry = lanes
    this.#breakers = breakers
    this.#lanes = new LaneSet({ ...common, timeoutMs, events: this.#events, lanes })
    this.#syncLoop = new SyncLoop({ ...common, lanes: this.#lanes, pods: store.pods, watch })
    this.#stopWatching = breakers.watch({
      onView: (guard, lane, view) => {
        if (guard === name) this.#lanes.receive(lane, view)
      },
      onGap: () => this.#syncLoop.syncAll(),
    })
    this.#syncLoop.begin()
  }

  hasPolicy(policy: CheckedPolicy): boolean {
    return isDeepStrictEqual(this.#policy, policy)
  }

  /** For a guard that replaces another one with the same policy. The breaker closes when its last user closes it. */
  share(): this {
    this.#users++
    return this
  }

  /** Starts with the states and the calls in flight of a breaker of the same name with another policy. */
  continueFrom(before: BreakerLanes): void {
    this.#lanes.inheritTraffic(before.#lanes)
    for (const { fleet } of before.#lanes.list()) {
      const received = fleet.lastReceived
      if (received !== undefined) this.#lanes.receive(fleet.lane, received.view)
    }
    this.#syncLoop.syncAll()
  }

  /** Whether entering cannot fail and needs no round trip. */
  isClear(lane: string | undefined): boolean {
    const { breaker } = this.#of(lane)
    if (!breaker.isClear || this.#lanes.allLanes?.isClear === false) return false
    return this.#refusingWatch?.reachable !== false
  }

  /** A permit, or the error to refuse with; a promise if the store has to be asked. */
  enter(lane: string | undefined): BreakerEntry | Promise<BreakerEntry> {
    if (this.#refusingWatch?.reachable === false) return this.#outageError(this.#refusingWatch)
    const own = this.#of(lane)
    const { allLanes } = this.#lanes
    if (allLanes?.isClear === false) {
      const { firstState } = allLanes
      if (firstState !== undefined) return firstState.then(() => this.enter(lane))
      const error = this.#allLanesRefusal()
      if (error !== undefined) return this.#refused(own, error)
    }
    if (own.breaker.isClear) return own.breaker.enter()
    const entry = own.breaker.enter()
    if (isBreakerPermit(entry)) return entry
    if (!isThenable(entry)) return this.#refused(own, entry)
    return entry.then((each) => (isBreakerPermit(each) ? each : this.#refused(own, each)))
  }

  exit(permit: BreakerPermit, outcome: Outcome): void {
    // A lane is dropped only after its last call, or when the generation of its permits is over.
    this.#known(permit.lane)?.breaker.exit(permit, outcome)
  }

  /** The attempt is a retry: its call is counted in the rates by another attempt. */
  markRepeated(permit: BreakerPermit): void {
    this.#of(permit.lane).breaker.markRepeated(permit)
  }

  /** The downstream has answered, so it does not hang, although the answer does not count in the rates. */
  markAnswered(permit: BreakerPermit): void {
    this.#known(permit.lane)?.breaker.markAnswered(permit)
  }

  /** The second attempt of a hedged call begins on the same lane: in the rates both are one call. */
  hedge(first: BreakerPermit, second: BreakerPermit): void {
    if (first.lane === second.lane) this.#of(first.lane).breaker.hedge(first, second)
  }

  /** Counts a call that was made without a permit. */
  record(lane: string | undefined, outcome: Outcome): void {
    this.#of(lane).breaker.record(outcome)
  }

  /** Waiting outcomes of this lane, for a request that leaves for the store now. */
  piggybackReport(lane: string): PiggybackedReport | undefined {
    return this.#known(lane)?.fleet.piggybackReport()
  }

  /** For calls that another transition grants; undefined in shadow mode, where none is refused. */
  requestPart(lane: string): BreakerRequestPart | undefined {
    return this.#policy.shadow ? undefined : this.#of(lane).fleet.requestPart()
  }

  /** The reference to a lane's breaker in the store; undefined in shadow mode, where none is refused. */
  ref(lane: string): BreakerRef | undefined {
    return this.#policy.shadow ? undefined : this.#refOf(lane)
  }

  /** The number of calls this pod may begin now, as far as it knows. */
  startable(lane: string): number {
    if (this.#policy.shadow) return Infinity
    if (this.#allLanesRefusal() !== undefined) return 0
    const own = this.#known(lane)
    if (own === undefined) return Infinity
    const { fleet, breaker } = own
    return isSelfIsolated(breaker) && fleet.state === 'closed' ? 0 : fleet.startable
  }

  /**
   * Why a call would be refused, as far as this pod knows. A half-open breaker has to be asked. Takes nothing
   * and publishes no event.
   */
  knownRefusal(lane: string | undefined): SpillwayError | undefined {
    if (this.#refusingWatch?.reachable === false) return this.#outageError(this.#refusingWatch)
    if (this.#policy.shadow) return undefined
    const { allLanes } = this.#lanes
    const refusal = allLanes?.isClear === false ? this.#allLanesRefusal() : undefined
    if (refusal !== undefined) return refusal
    const breaker = this.#known(lane)?.breaker
    return breaker?.isClear === false ? breaker.knownRefusal() : undefined
  }

  /** In shadow mode: why a call would have been refused. */
  shadowRefusal(lane: string | undefined): SpillwayError | undefined {
    const breaker = this.#known(lane)?.breaker
    return breaker?.isClear === false ? breaker.knownRefusal() : undefined
  }

  /** For a call that is refused now, if there is a known reason. Publishes an event. */
  refuse(lane: string | undefined): SpillwayError | undefined {
    const error = this.knownRefusal(lane)
    if (error === undefined) return undefined
    const own = this.#known(lane)
    // A lane that does not exist here is refused because all lanes are isolated.
    this.#events.refused(own?.fleet ?? { lane: lane ?? DEFAULT_LANE, state: 'isolated' })
    return error
  }

  /** Whether calls may be refused: the breaker is open, half-open or still in its ramp. */
  refuses(lane: string | undefined): boolean {
    if (this.#policy.shadow) return false
    if (this.#lanes.allLanes?.isClear === false || this.#refusingWatch?.reachable === false)
      return true
    return this.#known(lane)?.breaker.isClear === false
  }

  /** Reading creates no lane: one that does not exist is closed. */
  state(lane: string | undefined): BreakerStateName {
    if (this.#lanes.allLanes?.state === 'isolated') return 'isolated'
    return this.#shown(lane)?.fleet.state ?? 'closed'
  }

  snapshot(lane: string | undefined): BreakerSnapshot {
    return this.#snapshotOf(this.#shown(lane), lane)
  }

  /** Of all lanes that are in use. */
  snapshots(): BreakerSnapshot[] {
    return this.#lanes.list().map((lane) => this.#snapshotOf(lane, lane.fleet.lane))
  }

  /** From the store, whether or not this pod has used the lanes. */
  readStates(lanes: readonly string[]): Promise<{ lane: string; view: BreakerView }[]> {
    const { per } = this.#policy
    return readStates(this.#store.breakers, this.name, lanes, { spec: this.#spec, per })
  }

  onChange(listener: ChangeListener): () => void {
    return this.#events.onChange(listener)
  }

  /**
   * Changes of this pod's own breakers, which exist with a quorum: `open` when it isolates itself. They decide
   * only while the fleet's breaker is closed.
   */
  onOwnChange(listener: ChangeListener): () => void {
    return this.#events.onOwnChange(listener)
  }

  #outageError({ problem }: StoreWatch): SpillwayError {
    return refusedByOutageRule('breaker', this.name, problem, 'breaker.outage')
  }

  async command(lane: string | undefined, command: BreakerCommand['command']): Promise<void> {
    try {
      const own = this.#known(lane)
      if (own !== undefined) return await own.fleet.command(command)
      // A command does not create the lane, unless it isolates or opens it.
      const ref = this.#refOf(lane)
      this.#lanes.receive(ref.lane, await this.#breakers.command({ ...ref, command }))
    } catch (cause) {
      throw storeUnavailable('breaker', this.name, cause)
    }
  }

  /** Opens a lane's breaker for a reason that a call has found, unless its state has changed meanwhile. */
  async tripFound(lane: string, forUs: number): Promise<void> {
    await this.#of(lane).fleet.tripFound(forUs)
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
    this.#syncLoop.stop()
    this.#stopWatching()
    this.#stopOutages?.()
    await this.#lanes.close()
    await this.#syncLoop.leave()
  }

  #withOutages(watch: StoreWatch): BreakerStore {
    const { outage } = this.#policy
    const breakers = new OutageBreakers(this.#store.breakers, watch, this.#clock, outage)
    let reachable = watch.reachable
    this.#stopOutages = watch.onChange(() => {
      if (watch.reachable === reachable) return
      reachable = watch.reachable
      if (!reachable) {
        breakers.begin()
        for (const each of this.#lanes.shared()) {
          const received = each.lastReceived
          if (received !== undefined) breakers.adopt(received.ref, received.view, received.ageMs)
        }
      }
      this.#syncLoop.syncAll()
    })
    return breakers
  }

  /** For a call of this lane. */
  #of(name: string = DEFAULT_LANE): Lane {
    const { byName, sharesOne } = this.#lanes
    const own = byName.of(sharesOne ? ALL_LANES : name)
    own.used = true
    return own
  }

  /** Does not create the lane. A lane that is read is kept in sync with the store. */
  #known(name: string = DEFAULT_LANE): Lane | undefined {
    const { byName, sharesOne } = this.#lanes
    const own = byName.get(sharesOne ? ALL_LANES : name)
    if (own !== undefined) own.used = true
    return own
  }

  /** The lane to show in a snapshot: permanent lanes always exist. */
  #shown(name: string = DEFAULT_LANE): Lane | undefined {
    const lane = this.#registry.expected(name)
    const permanent = this.#registry.isPermanent(this.#lanes.storeLane(lane))
    return permanent ? this.#of(lane) : this.#known(lane)
  }

  /** The refusal of an isolation of all lanes. */
  #allLanesRefusal(): SpillwayError | undefined {
    const { allLanes } = this.#lanes
    if (allLanes === undefined || allLanes.isClear || allLanes.state !== 'isolated')
      return undefined
    return allLanes.knownRefusal()
  }

  #refOf(lane: string = DEFAULT_LANE): BreakerRef {
    return { guard: this.name, lane: this.#lanes.storeLane(lane), spec: this.#spec }
  }

  #snapshotOf(lane: Lane | undefined, name: string | undefined): BreakerSnapshot {
    const own =
      lane === undefined
        ? unknownLane(this.name, this.#refOf(name).lane)
        : { ...lane.fleet.snapshot(), selfIsolated: isSelfIsolated(lane.breaker) }
    const { allLanes } = this.#lanes
    if (allLanes?.state !== 'isolated') return own
    const untilMs = Math.max(allLanes.snapshot().untilMs ?? 0, own.untilMs ?? 0)
    return { ...own, state: 'isolated', untilMs }
  }

  /** In shadow mode a refusal is only published. */
  #refused({ fleet }: Lane, error: SpillwayError): BreakerEntry {
    this.#events.refused(fleet)
    return this.#policy.shadow ? uncountedPermit(fleet.lane) : error
  }
}

function isSelfIsolated(breaker: Lane['breaker']): boolean {
  return breaker instanceof QuorumBreaker && breaker.selfIsolated
}

/** The snapshot of a lane that does not exist here. */
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
