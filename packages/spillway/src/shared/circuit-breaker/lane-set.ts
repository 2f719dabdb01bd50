/**
 * The breakers of the lanes that this pod knows, and which of them are synchronised with the store. A lane's breaker
 * is created when a call uses the lane, or when the store reports that it is open or isolated. It is dropped
 * together with its lane.
 */
import type { Clock } from '../../core/time/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { BreakerStore, BreakerView } from '../../store/port.js'
import { ALL_LANES } from '../lanes/lane-names.js'
import { LANE_REST_MS, LaneMap, type LaneRegistry } from '../lanes/lane-registry.js'
import type { ChangeEvents } from './change-events.js'
import { LaneBreaker, type LaneBreakerOptions } from './lane/lane-breaker.js'
import type { LaneTraffic } from './lane/lane-traffic.js'
import { type CheckedPolicy, flushMsOf, rampMsOf } from './options.js'
import { QuorumBreaker } from './quorum.js'
import type { SyncedLanes } from './sync-loop.js'

export interface LaneSetOptions {
  name: string
  pod: string
  clock: Clock
  policy: CheckedPolicy
  spec: BreakerSpec
  /** How long an attempt may take, if that is limited. */
  timeoutMs: number | undefined
  /** The store's breakers, or this pod's own while the store is unreachable. */
  breakers: BreakerStore
  events: ChangeEvents
  lanes: LaneRegistry
}

/** The breaker of one lane. */
export interface Lane {
  readonly fleet: LaneBreaker
  /** Decides for calls: the fleet's, or with a quorum the fleet's and the pod's own together. */
  readonly breaker: LaneBreaker | QuorumBreaker
  /** A call has used it since the last round. */
  used: boolean
  /** The last round in which it was used. */
  usedMs: number
}

/** A lane is synchronised with the store for this long after it was last used. */
const IN_USE_MS = 3_000

export class LaneSet implements SyncedLanes {
  readonly allLanes: LaneBreaker | undefined
  readonly byName: LaneMap<Lane>
  readonly #options: LaneSetOptions
  /** With `per: 'vendor'` all lanes share one breaker. */
  readonly sharesOne: boolean
  /** Calls of a guard that this one replaces, by lane, until the lane is used here. */
  #inherited = new Map<string, LaneTraffic>()
  /** This pod's own breakers; created when there is a quorum. */
  #ownStore: BreakerStore | undefined

  constructor(options: LaneSetOptions) {
    this.#options = options
    this.sharesOne = options.policy.per === 'vendor'
    this.byName = new LaneMap(options.lanes, {
      create: (lane) => this.#create(lane),
      isIdle: ({ breaker }, unusedMs) => canDrop(breaker, unusedMs),
    })
    if (options.policy.per === 'lane') this.allLanes = new LaneBreaker(this.#laneOptions(ALL_LANES))
  }

  /** Calls that the lanes of another guard of the same name have in flight stay counted. */
  inheritTraffic(before: LaneSet): void {
    this.#inherited = new Map(before.shared().map((each) => [each.lane, each.traffic]))
  }

  list(): Lane[] {
    return [...this.byName.values()]
  }

  shared(): LaneBreaker[] {
    const lanes = Array.from(this.byName.values(), ({ fleet }) => fleet)
    return this.allLanes === undefined ? lanes : [...lanes, this.allLanes]
  }

  sharedInUse(): LaneBreaker[] {
    const nowMs = this.#options.clock.now()
    const inUse: LaneBreaker[] = []
    for (const { fleet, usedMs } of this.byName.values()) {
      if (nowMs - usedMs < IN_USE_MS || !fleet.isIdle) inUse.push(fleet)
    }
    return this.allLanes === undefined ? inUse : [...inUse, this.allLanes]
  }

  own(): { store: BreakerStore; breakers: QuorumBreaker[] } | undefined {
    if (this.#ownStore === undefined) return undefined
    const breakers = this.list().flatMap(({ breaker }) =>
      breaker instanceof QuorumBreaker ? breaker : [],
    )
    return { store: this.#ownStore, breakers }
  }

  /** The name of a lane in the store: with `per: 'vendor'` all lanes are one. */
  storeLane(name: string): string {
    return this.sharesOne ? ALL_LANES : name
  }

  /** The store has published the state of a lane. */
  receive(lane: string, view: BreakerView): void {
    if (lane === ALL_LANES && this.allLanes !== undefined) return this.allLanes.receive(view)
    // Published by a release with another `per`.
    if (lane !== this.storeLane(lane)) return
    const known = this.byName.get(lane)
    if (known !== undefined) return known.fleet.receive(view)
    // An operator has isolated it, so it counts even beyond `maxLanes`.
    const isolated = view.isolatedUntilUs > 0
    // An unknown lane counts as closed, so this is no change.
    if (!isolated && (view.kind === 0 || !this.#options.lanes.tryAdd(lane))) return
    this.byName.of(lane).fleet.receive(view)
  }

  sweep(): void {
    const nowMs = this.#options.clock.now()
    for (const lane of this.byName.values()) {
      if (lane.used) lane.usedMs = nowMs
      lane.used = false
    }
    this.#options.lanes.sweep()
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.byName.values(), ({ fleet }) => fleet.flush()))
  }

  async close(): Promise<void> {
    const closing = this.list().flatMap(({ fleet, breaker }) =>
      breaker === fleet ? fleet.close() : [fleet.close(), breaker.close()],
    )
    this.byName.close()
    await Promise.all([...closing, this.allLanes?.close()])
  }

  #create(lane: string): Lane {
    const { clock, spec, events } = this.#options
    let quorum: QuorumBreaker | undefined
    const options = this.#laneOptions(lane, () => quorum?.resetOwn())
    const fleet = new LaneBreaker({ ...options, traffic: this.#inherited.get(lane) })
    this.#inherited.delete(lane)
    const use = { used: true, usedMs: clock.now() }
    if (spec.quorum === 1) return { fleet, breaker: fleet, ...use }
    this.#ownStore ??= memoryStore({ clock }).breakers
    quorum = new QuorumBreaker(fleet, {
      ...options,
      store: this.#ownStore,
      scope: 'local',
      spec: { ...spec, quorum: 1 },
      onChange: (from, to) => events.ownChanged(lane, from, to),
    })
    return { fleet, breaker: quorum, ...use }
  }

  #laneOptions(lane: string, onChange?: () => void): LaneBreakerOptions {
    const { name, pod, breakers: store, clock, spec, policy, timeoutMs, events } = this.#options
    return {
      name,
      lane,
      pod,
      store,
      clock,
      spec,
      flushMs: flushMsOf(policy),
      rampMs: rampMsOf(policy),
      maxProbeMs: policy.maxProbeMs,
      timeoutMs: timeoutMs ?? policy.maxProbeMs,
      scope: 'shared',
      onChange: (from, to) => {
        onChange?.()
        events.changed(lane, from, to)
      },
    }
  }
}

/** An open or isolated lane is never dropped; a half-open one is when no call has used it for long. */
function canDrop(breaker: LaneBreaker | QuorumBreaker, unusedMs: number): boolean {
  if (breaker.isIdle) return true
  return unusedMs >= LANE_REST_MS && breaker.state === 'half-open' && breaker.hasNothingInFlight
}
