/**
 * The lanes of a breaker that this pod knows of: made when somebody uses or hears of one, dropped when nobody has for
 * long and there is nothing to remember.
 */
import type { Clock } from '../../core/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { BreakerStore, BreakerView } from '../../store/port.js'
import { ALL_LANES, DEFAULT_LANE } from '../default-lane.js'
import type { BreakerNews } from './breaker-news.js'
import { LaneBreaker, type LaneBreakerOptions } from './lane-breaker.js'
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
  /** The store's, or this pod's own while that is away. */
  breakers: BreakerStore
  news: BreakerNews
}

/** The breaker of a lane, with the pod's own beside it where there is a quorum. */
export interface Lane {
  readonly fleet: LaneBreaker
  readonly quorum: QuorumLane | undefined
  /** Since the last sweep. */
  used: boolean
  /** When it was last seen in use. */
  usedMs: number
}

/** A lane that nobody has used for so long, and that has nothing to remember, is dropped. */
const REST_MS = 300_000

export class BreakerLanes {
  /** Where each lane has a breaker of its own: what somebody has isolated all of them with. */
  readonly whole: LaneBreaker | undefined
  readonly #options: BreakerLanesOptions
  readonly #lanes = new Map<string, Lane>()
  #lastName: string | undefined
  #last: Lane | undefined
  /** Made when a quorum asks for it. */
  #privateStore: BreakerStore | undefined

  constructor(options: BreakerLanesOptions) {
    this.#options = options
    if (options.policy.per === 'lane') this.whole = new LaneBreaker(this.#laneOptions(ALL_LANES))
  }

  /** For somebody who uses it. */
  of(name: string = DEFAULT_LANE): Lane {
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

  list(): Lane[] {
    return [...this.#lanes.values()]
  }

  /** What the store knows of, that for all lanes included. */
  fleets(): LaneBreaker[] {
    const lanes = Array.from(this.#lanes.values(), ({ fleet }) => fleet)
    return this.whole === undefined ? lanes : [...lanes, this.whole]
  }

  /** Where this pod's own breakers are, if there are any. */
  get privateStore(): BreakerStore | undefined {
    return this.#privateStore
  }

  hear(lane: string, view: BreakerView): void {
    if (lane === ALL_LANES && this.whole !== undefined) return this.whole.hear(view)
    // Of a release that divides lanes in another way.
    if (lane !== this.#laneOf(lane)) return
    // Listeners hear of lanes that nobody uses here, too; but that one is closed is no change.
    const isNews = view.kind !== 0 || view.isolatedUntilUs > 0
    if (isNews || this.#lanes.has(lane)) this.#find(lane).fleet.hear(view)
  }

  /** Forgets lanes that were named once: the store knows what there is to know of them. */
  sweep(): void {
    const nowMs = this.#options.clock.now()
    for (const [name, lane] of this.#lanes) {
      const { fleet, quorum, used } = lane
      lane.used = false
      if (used || !(quorum ?? fleet).isIdle) lane.usedMs = nowMs
      else if (nowMs - lane.usedMs >= REST_MS) this.#lanes.delete(name)
    }
    this.#last = undefined
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ fleet }) => fleet.flush()))
  }

  async close(): Promise<void> {
    const closing = Array.from(this.#lanes.values(), async ({ fleet, quorum }) => {
      await Promise.all([fleet.close(), quorum?.close()])
    })
    await Promise.all([...closing, this.whole?.close()])
  }

  #laneOf(name: string): string {
    return this.#options.policy.per === 'vendor' ? ALL_LANES : name
  }

  #find(lane: string): Lane {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const own = this.#create(lane)
    this.#lanes.set(lane, own)
    return own
  }

  #create(lane: string): Lane {
    const { clock, spec, news } = this.#options
    let quorum: QuorumLane | undefined
    const options = this.#laneOptions(lane, () => quorum?.forget())
    const fleet = new LaneBreaker(options)
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
