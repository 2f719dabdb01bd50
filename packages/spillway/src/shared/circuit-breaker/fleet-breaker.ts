/**
 * A breaker with all its lanes, kept in step with the fleet: pushed by the store, repaired by asking
 * now and then. Entered before a call and left after it; who calls, and how the end of a call is
 * judged, is somebody else's business: the circuit breaker's, or a guard's.
 */
import type { Clock, Timer } from '../../core/clock.js'
import { SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { BreakerCommand, BreakerStore, Store } from '../../store/port.js'
import type { BreakerChange, BreakerSnapshot, BreakerStateName } from './api.js'
import {
  type Entry,
  LaneBreaker,
  type LaneBreakerOptions,
  type LanePermit,
} from './lane-breaker.js'
import { type CheckedPolicy, flushMsOf, rampMsOf, toSpec } from './options.js'
import { isPermit, QuorumLane } from './quorum-lane.js'

export interface FleetBreakerOptions {
  name: string
  store: Store
  /** This pod, and no other that ever was. */
  pod: string
  clock: Clock
  policy: CheckedPolicy
}

const DEFAULT_LANE = 'default'
/** The lane of a breaker that spans all of them. */
const ALL_LANES = ''
/** A lost message is found out after this at the latest. */
const SYNC_MS = 1_000
/** A pod that has not said anything for so many rounds is gone. */
const BEATS_IN_A_LIFE = 5

/** The breaker of a lane, with the pod's own beside it where there is a quorum. */
interface Lane {
  fleet: LaneBreaker
  quorum: QuorumLane | undefined
}

export class FleetBreaker {
  readonly name: string
  readonly #policy: CheckedPolicy
  readonly #spec: BreakerSpec
  readonly #clock: Clock
  readonly #store: Store
  readonly #pod: string
  readonly #lanes = new Map<string, Lane>()
  readonly #listeners = new Set<(change: BreakerChange) => unknown>()
  readonly #unwatch: () => void
  #lastName: string | undefined
  #last: Lane | undefined
  /** Made when a quorum asks for it. */
  #privateStore: BreakerStore | undefined
  #syncing: Timer | undefined
  #closed = false

  constructor({ name, store, pod, clock, policy }: FleetBreakerOptions) {
    this.name = name
    this.#policy = policy
    this.#spec = toSpec(policy)
    this.#clock = clock
    this.#store = store
    this.#pod = pod
    this.#unwatch = store.breakers.watch({
      onView: (guard, lane, view) => {
        // A lane nobody has used here, too: listeners hear of every one.
        if (guard === this.name) this.#lane(lane).fleet.hear(view)
      },
      onGap: () => this.#sync(),
    })
    this.#beat()
    this.#keepInStep()
  }

  /** Nothing stands in the way: entering cannot fail, and needs no trip. */
  isClear(lane: string | undefined): boolean {
    const { fleet, quorum } = this.#lane(lane)
    return (quorum ?? fleet).isClear
  }

  /** A permit, or the error to refuse with; later, if the store has to be asked. */
  enter(lane: string | undefined): Entry | Promise<Entry> {
    const own = this.#lane(lane)
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

  /** For a call that was made without asking. */
  note(lane: string | undefined, outcome: Outcome): void {
    const { fleet, quorum } = this.#lane(lane)
    ;(quorum ?? fleet).note(outcome)
  }

  /** Why a call would be refused, as far as this pod knows; a half-open one has to be asked. */
  knownRefusal(lane: string | undefined): SpillwayError | undefined {
    const own = this.#lane(lane)
    if (own.fleet.isClear) return undefined
    const error = own.fleet.knownRefusal()
    if (error === undefined) return undefined
    const entry = this.#no(own, error)
    return isPermit(entry) ? undefined : entry
  }

  state(lane: string | undefined): BreakerStateName {
    return this.#lane(lane).fleet.state
  }

  snapshot(lane: string | undefined): BreakerSnapshot {
    const { fleet, quorum } = this.#lane(lane)
    return { ...fleet.snapshot(), selfIsolated: quorum?.selfIsolated ?? false }
  }

  /** Of all lanes that were used. */
  snapshots(): BreakerSnapshot[] {
    return Array.from(this.#lanes.keys(), (lane) => this.snapshot(lane))
  }

  onChange(listener: (change: BreakerChange) => unknown): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
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

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ fleet }) => fleet.flush()))
  }

  get closed(): boolean {
    return this.#closed
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#syncing?.cancel()
    this.#unwatch()
    const closing = Array.from(this.#lanes.values(), async ({ fleet, quorum }) => {
      await Promise.all([fleet.close(), quorum?.close()])
    })
    await Promise.all(closing)
    if (this.#spec.quorum > 1) await this.#leave()
  }

  #lane(name: string = DEFAULT_LANE): Lane {
    // Nearly always the same as last time.
    if (name === this.#lastName) return this.#last as Lane
    const lane = this.#policy.per === 'vendor' ? ALL_LANES : name
    let own = this.#lanes.get(lane)
    if (own === undefined) {
      own = this.#createLane(lane)
      this.#lanes.set(lane, own)
    }
    this.#lastName = name
    this.#last = own
    return own
  }

  #createLane(lane: string): Lane {
    const options: LaneBreakerOptions = {
      name: this.name,
      lane,
      pod: this.#pod,
      store: this.#store.breakers,
      clock: this.#clock,
      spec: this.#spec,
      flushMs: flushMsOf(this.#policy),
      rampMs: rampMsOf(this.#policy),
      maxProbeMs: this.#policy.maxProbeMs,
      scope: 'shared',
      onChange: (from, to) => {
        quorum?.forget()
        this.#changed(lane, from, to)
      },
    }
    let quorum: QuorumLane | undefined
    const fleet = new LaneBreaker(options)
    if (this.#spec.quorum === 1) return { fleet, quorum }
    this.#privateStore ??= memoryStore({ clock: this.#clock }).breakers
    const privately: LaneBreakerOptions = {
      ...options,
      store: this.#privateStore,
      scope: 'local',
      spec: { ...this.#spec, quorum: 1 },
      onChange: (_, to) => this.#changedAlone(lane, to),
    }
    quorum = new QuorumLane(fleet, privately)
    return { fleet, quorum }
  }

  /** In shadow mode a refusal is only told. */
  #no(lane: Lane, error: SpillwayError): Entry {
    const { shadow } = this.#policy
    if (listening()) {
      const { fleet } = lane
      emit({
        type: 'breaker.refused',
        name: this.name,
        lane: fleet.lane,
        state: fleet.state,
        shadow,
      })
    }
    return shadow ? fleetless(lane.fleet.lane) : error
  }

  #changed(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    const change = { name: this.name, lane, from, to }
    if (listening()) emit({ type: EVENT[to], name: this.name, lane, from })
    for (const listener of this.#listeners) {
      callSafely(this.name, 'onChange', () => swallow(listener(change)), undefined)
    }
  }

  #changedAlone(lane: string, to: BreakerStateName): void {
    if (to === 'open' && listening()) emit({ type: 'breaker.self-isolated', name: this.name, lane })
  }

  #keepInStep(): void {
    const roundMs = Math.min(SYNC_MS, this.#policy.probeLeaseMs / 3)
    this.#syncing = this.#clock.schedule(roundMs, () => {
      this.#sync()
      this.#beat()
      this.#keepInStep()
    })
    this.#syncing.unref()
  }

  /** Repairs what a lost message left behind, and renews the leases of our probes. */
  #sync(): void {
    const lanes = [...this.#lanes.values()].map(({ fleet }) => fleet)
    if (lanes.length === 0) return
    attempt(async () => {
      const views = await this.#store.breakers.sync(lanes.map((lane) => lane.syncRequest()))
      for (const [index, view] of views.entries()) lanes[index]?.hear(view)
    })
  }

  /** A quorum needs to know how many there are. */
  #beat(): void {
    if (this.#spec.quorum === 1) return
    const lifeUs = SYNC_MS * BEATS_IN_A_LIFE * 1_000
    const beat = { group: this.name, pod: this.#pod, lifeUs, snapshot: '' }
    attempt(async () => {
      await this.#store.pods.beat(beat)
    })
  }

  async #leave(): Promise<void> {
    try {
      await this.#store.pods.leave({ group: this.name, pod: this.#pod })
    } catch {
      // Then its time runs out.
    }
  }
}

/** In the background: the next round tries again. */
function attempt(work: () => Promise<void>): void {
  work().catch(() => {})
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
