/**
 * A breaker with all its lanes, kept in step with the fleet: pushed by the store, repaired by asking
 * now and then. Entered before a call and left after it; who calls, and how the end of a call is
 * judged, is somebody else's business: the circuit breaker's, or a guard's.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Clock, Timer } from '../../core/clock.js'
import { SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerStore,
  BreakerView,
  Store,
} from '../../store/port.js'
import { ALL_LANES, DEFAULT_LANE } from '../default-lane.js'
import { BEATS_IN_A_LIFE } from '../membership.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { BreakerChange, BreakerSnapshot, BreakerStateName } from './api.js'
import {
  type BreakerPassage,
  type BreakerRide,
  type Entry,
  LaneBreaker,
  type LaneBreakerOptions,
  type LanePermit,
} from './lane-breaker.js'
import { lookAt } from './look.js'
import { type CheckedPolicy, flushMsOf, rampMsOf, toSpec } from './options.js'
import { OutageBreakers } from './outage-breakers.js'
import { isPermit, QuorumLane } from './quorum-lane.js'

export interface FleetBreakerOptions {
  name: string
  store: Store
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  policy: CheckedPolicy
  /** Over a remote store. */
  watch?: StoreWatch | undefined
}

/**
 * A lane of which nothing is heard is asked for so often. One of which something was heard in the
 * last half of that is not, so a lost message is found out after one and a half of it at the latest.
 */
const SYNC_MS = 1_000
/** A lane that nobody has used for so long, and that has nothing to remember, is dropped. */
const REST_MS = 300_000
/** That all lanes are isolated is pushed; how often to make sure that nothing was lost. */
const WHOLE_SYNC_MS = 5_000

/** The breaker of a lane, with the pod's own beside it where there is a quorum. */
interface Lane {
  fleet: LaneBreaker
  quorum: QuorumLane | undefined
  /** Since the last round. */
  used: boolean
  /** When it was last seen in use. */
  usedMs: number
}

export class FleetBreaker {
  readonly name: string
  readonly #policy: CheckedPolicy
  readonly #spec: BreakerSpec
  readonly #clock: Clock
  readonly #store: Store
  /** The store's, or this pod's own while that is away. */
  readonly #breakers: BreakerStore
  readonly #watch: StoreWatch | undefined
  readonly #pod: string
  readonly #lanes = new Map<string, Lane>()
  /** Where each lane has a breaker of its own: what somebody has isolated all of them with. */
  readonly #whole: LaneBreaker | undefined
  readonly #listeners = new Set<Listener>()
  readonly #ownListeners = new Set<Listener>()
  readonly #unwatch: () => void
  #unheed: (() => void) | undefined
  #lastName: string | undefined
  #last: Lane | undefined
  /** Made when a quorum asks for it. */
  #privateStore: BreakerStore | undefined
  #syncing: Timer | undefined
  /** Set while a beat is under way. */
  #beating: Promise<void> | undefined
  #users = 1
  #closed = false

  constructor({ name, store, pod, clock, policy, watch }: FleetBreakerOptions) {
    this.name = name
    this.#policy = policy
    this.#spec = toSpec(policy)
    this.#clock = clock
    this.#store = store
    this.#pod = pod
    this.#watch = watch
    this.#breakers = watch === undefined ? store.breakers : this.#overOutages(watch)
    if (policy.per === 'lane') this.#whole = new LaneBreaker(this.#laneOptions(ALL_LANES))
    this.#unwatch = this.#breakers.watch({
      onView: (guard, lane, view) => {
        if (guard === this.name) this.#hear(lane, view)
      },
      onGap: () => this.#sync(Number.POSITIVE_INFINITY),
    })
    this.#beat()
    this.#keepInStep()
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
    for (const [lane, { fleet }] of before.#lanes) {
      const heard = fleet.lastHeard
      if (heard !== undefined) this.#hear(lane, heard.view)
    }
    this.#sync(Number.POSITIVE_INFINITY)
  }

  /** Nothing stands in the way: entering cannot fail, and needs no trip. */
  isClear(lane: string | undefined): boolean {
    const { fleet, quorum } = this.#lane(lane)
    return (quorum ?? fleet).isClear && this.#whole?.isClear !== false && !this.#barred
  }

  /** A permit, or the error to refuse with; later, if the store has to be asked. */
  enter(lane: string | undefined): Entry | Promise<Entry> {
    if (this.#barred) return barredError(this.name)
    const own = this.#lane(lane)
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
    const { fleet, quorum } = this.#lane(permit.lane)
    ;(quorum ?? fleet).exit(permit, outcome)
  }

  /** Outcomes of this lane that wait, for somebody who leaves for this guard's store now. */
  ride(lane: string): BreakerRide | undefined {
    return this.#lane(lane).fleet.ride()
  }

  /** For calls that are let through in a step of somebody else's; nothing, if none would be refused. */
  passage(lane: string): BreakerPassage | undefined {
    return this.#policy.shadow ? undefined : this.#lane(lane).fleet.passage()
  }

  /** What the store knows a lane's breaker by; nothing, if it refuses nobody. */
  ref(lane: string): BreakerRef | undefined {
    return this.#policy.shadow ? undefined : this.#lane(lane).fleet.ref
  }

  /** How many calls this pod may begin now, as far as it knows. */
  spare(lane: string): number {
    if (this.#policy.shadow) return Infinity
    if (this.#heldBack() !== undefined) return 0
    const { fleet, quorum } = this.#lane(lane)
    return quorum?.selfIsolated === true && fleet.state === 'closed' ? 0 : fleet.spare
  }

  /** For a call that was made without asking. */
  note(lane: string | undefined, outcome: Outcome): void {
    const { fleet, quorum } = this.#lane(lane)
    ;(quorum ?? fleet).note(outcome)
  }

  /**
   * Why a call would be refused, as far as this pod knows; a half-open one has to be asked. Only a
   * look: nobody hears of it.
   */
  knownRefusal(lane: string | undefined): SpillwayError | undefined {
    if (this.#barred) return barredError(this.name)
    const { fleet, quorum } = this.#lane(lane)
    const breaker = quorum ?? fleet
    if (this.#policy.shadow) return undefined
    return this.#heldBack() ?? (breaker.isClear ? undefined : breaker.knownRefusal())
  }

  /** In shadow: why a call would have been refused. */
  shadowRefusal(lane: string | undefined): SpillwayError | undefined {
    const { fleet, quorum } = this.#lane(lane)
    const breaker = quorum ?? fleet
    return breaker.isClear ? undefined : breaker.knownRefusal()
  }

  /** The same for a call that is now refused, if there is a reason: that is told. */
  refuse(lane: string | undefined): SpillwayError | undefined {
    const error = this.knownRefusal(lane)
    if (error !== undefined) this.#tellRefused(this.#lane(lane))
    return error
  }

  /** It stands in the way of some, or of all: open, half-open, or closed only just now. */
  refuses(lane: string | undefined): boolean {
    return !this.#policy.shadow && !this.isClear(lane)
  }

  state(lane: string | undefined): BreakerStateName {
    return this.#whole?.state === 'isolated' ? 'isolated' : this.#lane(lane).fleet.state
  }

  snapshot(lane: string | undefined): BreakerSnapshot {
    return this.#snapshotOf(this.#lane(lane))
  }

  /** Of all lanes that are in use. */
  snapshots(): BreakerSnapshot[] {
    return Array.from(this.#lanes.values(), (lane) => this.#snapshotOf(lane))
  }

  /** By the store's own word, whether or not this pod has used them. */
  look(lanes: readonly string[]): Promise<{ lane: string; view: BreakerView }[]> {
    const { per } = this.#policy
    return lookAt(this.#store.breakers, this.name, lanes, { spec: this.#spec, per })
  }

  onChange(listener: Listener): () => void {
    return addTo(this.#listeners, listener)
  }

  /**
   * Changes of this pod's own breakers, which there are with a quorum: `open` when it isolates itself.
   * They decide only while the fleet's is closed.
   */
  onOwnChange(listener: Listener): () => void {
    return addTo(this.#ownListeners, listener)
  }

  async command(lane: string | undefined, command: BreakerCommand['command']): Promise<void> {
    try {
      await this.#lane(lane).fleet.command(command)
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
        for (const each of this.#all()) {
          const heard = each.lastHeard
          if (heard !== undefined) breakers.adopt(heard.ref, heard.view, heard.ageMs)
        }
      }
      // Whoever is asked from now on says how things are.
      this.#sync(Number.POSITIVE_INFINITY)
    })
    return breakers
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ fleet }) => fleet.flush()))
  }

  get closed(): boolean {
    return this.#closed
  }

  async close(): Promise<void> {
    if (this.#closed || --this.#users > 0) return
    this.#closed = true
    this.#syncing?.cancel()
    this.#unwatch()
    this.#unheed?.()
    const closing = Array.from(this.#lanes.values(), async ({ fleet, quorum }) => {
      await Promise.all([fleet.close(), quorum?.close()])
    })
    await Promise.all([...closing, this.#whole?.close()])
    if (this.#spec.quorum > 1) await this.#leave()
  }

  #lane(name: string = DEFAULT_LANE): Lane {
    // Nearly always the same as last time.
    let own = this.#last
    if (own === undefined || name !== this.#lastName) {
      own = this.#find(this.#laneOf(name))
      this.#lastName = name
      this.#last = own
    }
    own.used = true
    return own
  }

  #laneOf(name: string): string {
    return this.#policy.per === 'vendor' ? ALL_LANES : name
  }

  #find(lane: string): Lane {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const own = this.#createLane(lane)
    this.#lanes.set(lane, own)
    return own
  }

  #hear(lane: string, view: BreakerView): void {
    if (lane === ALL_LANES && this.#whole !== undefined) return this.#whole.hear(view)
    // Of a release that divides lanes in another way.
    if (lane !== this.#laneOf(lane)) return
    // Listeners hear of lanes that nobody uses here, too; but that one is closed is no change.
    const isNews = view.kind !== 0 || view.isolatedUntilUs > 0
    if (isNews || this.#lanes.has(lane)) this.#find(lane).fleet.hear(view)
  }

  #createLane(lane: string): Lane {
    let quorum: QuorumLane | undefined
    const options = this.#laneOptions(lane, () => quorum?.forget())
    const fleet = new LaneBreaker(options)
    const use = { used: true, usedMs: this.#clock.now() }
    if (this.#spec.quorum === 1) return { fleet, quorum, ...use }
    this.#privateStore ??= memoryStore({ clock: this.#clock }).breakers
    const privately: LaneBreakerOptions = {
      ...options,
      store: this.#privateStore,
      scope: 'local',
      spec: { ...this.#spec, quorum: 1 },
      onChange: (from, to) => this.#changedAlone(lane, from, to),
    }
    quorum = new QuorumLane(fleet, privately)
    return { fleet, quorum, ...use }
  }

  #laneOptions(lane: string, onChange?: () => void): LaneBreakerOptions {
    return {
      name: this.name,
      lane,
      pod: this.#pod,
      store: this.#breakers,
      clock: this.#clock,
      spec: this.#spec,
      flushMs: flushMsOf(this.#policy),
      rampMs: rampMsOf(this.#policy),
      maxProbeMs: this.#policy.maxProbeMs,
      scope: 'shared',
      onChange: (from, to) => {
        onChange?.()
        this.#changed(lane, from, to)
      },
    }
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

  #all(): LaneBreaker[] {
    const lanes = Array.from(this.#lanes.values(), ({ fleet }) => fleet)
    return this.#whole === undefined ? lanes : [...lanes, this.#whole]
  }

  /** In shadow mode a refusal is only told. */
  #no(lane: Lane, error: SpillwayError): Entry {
    this.#tellRefused(lane)
    return this.#policy.shadow ? fleetless(lane.fleet.lane) : error
  }

  #tellRefused({ fleet }: Lane): void {
    if (!listening()) return
    const { lane, state } = fleet
    emit({ type: 'breaker.refused', name: this.name, lane, state, shadow: this.#policy.shadow })
  }

  #changed(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    if (listening()) emit({ type: EVENT[to], name: this.name, lane, from })
    this.#tell(this.#listeners, { name: this.name, lane, from, to })
  }

  #changedAlone(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    if (to === 'open' && listening()) emit({ type: 'breaker.self-isolated', name: this.name, lane })
    this.#tell(this.#ownListeners, { name: this.name, lane, from, to })
  }

  #tell(listeners: ReadonlySet<Listener>, change: BreakerChange): void {
    for (const listener of listeners) {
      callSafely(this.name, 'onChange', () => swallow(listener(change)), undefined)
    }
  }

  #keepInStep(): void {
    const roundMs = Math.min(SYNC_MS, this.#policy.probeLeaseMs / 3)
    this.#syncing = this.#clock.schedule(roundMs, () => {
      this.#sweep()
      this.#sync(this.#clock.now() - roundMs / 2)
      this.#beat()
      this.#keepInStep()
    })
    this.#syncing.unref()
  }

  /** Forgets lanes that were named once: the store knows what there is to know of them. */
  #sweep(): void {
    const nowMs = this.#clock.now()
    for (const [name, lane] of this.#lanes) {
      const { fleet, quorum, used } = lane
      lane.used = false
      if (used || !(quorum ?? fleet).isIdle) lane.usedMs = nowMs
      else if (nowMs - lane.usedMs >= REST_MS) this.#lanes.delete(name)
    }
    this.#last = undefined
  }

  /**
   * Repairs what a lost message left behind, and renews the leases of our probes. Of a lane that the
   * store has spoken of since then nothing is lost: every answer says how things are.
   */
  #sync(heardSinceMs: number): void {
    const lanes = [...this.#lanes.values()]
    const wholeSinceMs = heardSinceMs - WHOLE_SYNC_MS
    askAll(
      this.#breakers,
      this.#all().filter(
        (each) => !each.isInStep(each === this.#whole ? wholeSinceMs : heardSinceMs),
      ),
    )
    if (this.#privateStore === undefined) return
    askAll(
      this.#privateStore,
      lanes.flatMap(({ quorum }) => quorum ?? []),
    )
  }

  /** A quorum needs to know how many there are. */
  #beat(): void {
    if (this.#spec.quorum === 1 || this.#beating !== undefined) return
    if (this.#watch?.reachable === false) return
    const lifeUs = SYNC_MS * BEATS_IN_A_LIFE * 1_000
    const beat = { group: this.name, pod: this.#pod, lifeUs, snapshot: '' }
    this.#beating = attempt(async () => {
      await this.#store.pods.beat(beat)
    }).then(() => {
      this.#beating = undefined
    })
  }

  async #leave(): Promise<void> {
    // A beat that arrived after we left would bring us back.
    await this.#beating
    try {
      await this.#store.pods.leave({ group: this.name, pod: this.#pod })
    } catch {
      // Then its time runs out.
    }
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

type Listener = (change: BreakerChange) => unknown

function addTo(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** In one trip. */
function askAll(store: BreakerStore, lanes: readonly Pick<LaneBreaker, 'ask'>[]): void {
  if (lanes.length === 0) return
  const asked = lanes.map((lane) => lane.ask())
  void attempt(async () => {
    const views = await store.sync(asked.map(({ request }) => request))
    for (const [index, view] of views.entries()) asked[index]?.hear(view)
  })
}

/** In the background: the next round tries again. */
function attempt(work: () => Promise<void>): Promise<void> {
  return work().catch(() => {})
}

/** Of a generation that never is: whatever the call's outcome, it changes nothing. */
function fleetless(lane: string): LanePermit {
  return { lane, generation: -1, probe: false, id: undefined }
}

const EVENT = {
  closed: 'breaker.closed',
  open: 'breaker.opened',
  'half-open': 'breaker.half-opened',
  isolated: 'breaker.isolated',
} as const
