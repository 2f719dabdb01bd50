/**
 * The breakers of all lanes that this pod knows. A lane's breaker is created when a call uses the lane, or when
 * the store reports that it is open or isolated; it is dropped together with its lane.
 */
import type { Clock } from '../../core/time/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { BreakerStore, BreakerView } from '../../store/port.js'
import { ALL_LANES, DEFAULT_LANE } from '../default-lane.js'
import { LaneMap } from '../lanes/lane-map.js'
import { LANE_REST_MS, type LaneRegistry } from '../lanes/lane-registry.js'
import type { BreakerNews } from './breaker-news.js'
import { LaneBreaker, type LaneBreakerOptions } from './lane-breaker.js'
import type { LaneTraffic } from './lane-traffic.js'
import { type CheckedPolicy, flushMsOf, rampMsOf } from './options.js'
import { QuorumLane } from './quorum-lane.js'

export interface BreakerLanesOptions {
  name: string
  pod: string
  clock: Clock
  policy: CheckedPolicy
  spec: BreakerSpec
  /** How long an attempt may take, if that is limited. */
  timeoutMs: number | undefined
  /** The store's breakers, or this pod's own while the store is unreachable. */
  breakers: BreakerStore
  news: BreakerNews
  lanes: LaneRegistry
}

/** The breaker of a lane, with the pod's own beside it if there is a quorum. */
export interface Lane {
  readonly fleet: LaneBreaker
  readonly quorum: QuorumLane | undefined
  /** Since the last round. */
  used: boolean
  /** The last round in which it was used. */
  usedMs: number
}

/** A lane is synchronised with the store for this long after it was last used. */
const IN_USE_MS = 3_000

export class BreakerLanes {
  /** With a breaker for each lane: the one that isolates all of them. */
  readonly whole: LaneBreaker | undefined
  readonly #options: BreakerLanesOptions
  readonly #lanes: LaneMap<Lane>
  /** Calls of a guard that this one replaces, by lane, until the lane is used here. */
  #inherited = new Map<string, LaneTraffic>()
  /** Created when there is a quorum. */
  #privateStore: BreakerStore | undefined

  constructor(options: BreakerLanesOptions) {
    this.#options = options
    this.#lanes = new LaneMap(options.lanes, {
      create: (lane) => this.#create(lane),
      isIdle: ({ fleet, quorum }, unusedMs) => canDrop(quorum ?? fleet, unusedMs),
    })
    if (options.policy.per === 'lane') this.whole = new LaneBreaker(this.#laneOptions(ALL_LANES))
  }

  /** Calls that the lanes of another guard of the same name have in flight stay counted. */
  inheritTraffic(before: BreakerLanes): void {
    this.#inherited = new Map(before.fleets().map((each) => [each.lane, each.traffic]))
  }

  /** For a call of this lane. */
  of(name: string = DEFAULT_LANE): Lane {
    const own = this.#lanes.of(this.#laneOf(name))
    own.used = true
    return own
  }

  /** Creates nothing. A lane that is looked at is kept in step with the store. */
  known(name: string = DEFAULT_LANE): Lane | undefined {
    const own = this.#lanes.get(this.#laneOf(name))
    if (own !== undefined) own.used = true
    return own
  }

  /** The lane to describe, for a reader: permanent lanes always exist. */
  describable(name: string = DEFAULT_LANE): Lane | undefined {
    const { lanes } = this.#options
    const lane = lanes.expected(name)
    return lanes.isPermanent(this.#laneOf(lane)) ? this.of(lane) : this.known(lane)
  }

  list(): Lane[] {
    return [...this.#lanes.values()]
  }

  /** All breakers of the store, the one for all lanes included. */
  fleets(): LaneBreaker[] {
    const lanes = Array.from(this.#lanes.values(), ({ fleet }) => fleet)
    return this.whole === undefined ? lanes : [...lanes, this.whole]
  }

  /** Breakers that have to be kept in step: those in use, and those that are not simply closed. */
  fleetsInUse(): LaneBreaker[] {
    const nowMs = this.#options.clock.now()
    const inUse: LaneBreaker[] = []
    for (const { fleet, usedMs } of this.#lanes.values()) {
      if (nowMs - usedMs < IN_USE_MS || !fleet.isIdle) inUse.push(fleet)
    }
    return this.whole === undefined ? inUse : [...inUse, this.whole]
  }

  /** Where this pod's own breakers are, if there are any. */
  get privateStore(): BreakerStore | undefined {
    return this.#privateStore
  }

  hear(lane: string, view: BreakerView): void {
    if (lane === ALL_LANES && this.whole !== undefined) return this.whole.hear(view)
    // Published by a release that divides lanes in another way.
    if (lane !== this.#laneOf(lane)) return
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known.fleet.hear(view)
    // An operator has isolated it, so it counts even beyond `maxLanes`.
    const isolated = view.isolatedUntilUs > 0
    // That an unknown lane is closed is no change.
    if (!isolated && (view.kind === 0 || !this.#options.lanes.tryAdd(lane))) return
    this.#lanes.of(lane).fleet.hear(view)
  }

  /** Once per round: notes which lanes were used, and drops those that were not used for long. */
  sweep(): void {
    const nowMs = this.#options.clock.now()
    for (const lane of this.#lanes.values()) {
      if (lane.used) lane.usedMs = nowMs
      lane.used = false
    }
    this.#options.lanes.sweep()
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ fleet }) => fleet.flush()))
  }

  async close(): Promise<void> {
    const closing = Array.from(this.#lanes.values(), async ({ fleet, quorum }) => {
      await Promise.all([fleet.close(), quorum?.close()])
    })
    this.#lanes.close()
    await Promise.all([...closing, this.whole?.close()])
  }

  #laneOf(name: string): string {
    return this.#options.policy.per === 'vendor' ? ALL_LANES : name
  }

  #create(lane: string): Lane {
    const { clock, spec, news } = this.#options
    let quorum: QuorumLane | undefined
    const options = this.#laneOptions(lane, () => quorum?.forget())
    const fleet = new LaneBreaker({ ...options, traffic: this.#inherited.get(lane) })
    this.#inherited.delete(lane)
    const use = { used: true, usedMs: clock.now() }
    if (spec.quorum === 1) return { fleet, quorum, ...use }
    this.#privateStore ??= memoryStore({ clock }).breakers
    const privately: LaneBreakerOptions = {
      ...options,
      store: this.#privateStore,
      scope: 'local',
      spec: { ...spec, quorum: 1 },
      onChange: (from, to) => news.changedAlone(lane, from, to),
    }
    quorum = new QuorumLane(fleet, privately)
    return { fleet, quorum, ...use }
  }

  #laneOptions(lane: string, onChange?: () => void): LaneBreakerOptions {
    const { name, pod, breakers: store, clock, spec, policy, timeoutMs, news } = this.#options
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
        news.changed(lane, from, to)
      },
    }
  }
}

/** An open or isolated lane is never dropped; a half-open one is when no call has tried it for long. */
function canDrop(breaker: LaneBreaker | QuorumLane, unusedMs: number): boolean {
  if (breaker.isIdle) return true
  return unusedMs >= LANE_REST_MS && breaker.state === 'half-open' && breaker.hasNothingInFlight
}
