/**
 * Keeps the lanes of a breaker in sync with the fleet. The store publishes every change; a sync once per round
 * repairs lost messages. The same rounds renew the leases of probes, register this pod for a quorum, and drop
 * lanes that were not used for long.
 */
import type { Clock, Timer } from '../../core/time/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type { BreakerStore, Store } from '../../store/port.js'
import { BEATS_IN_A_LIFE } from '../membership.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { LaneBreaker } from './lane/lane-breaker.js'
import type { CheckedPolicy } from './options.js'
import type { QuorumBreaker } from './quorum.js'

/** The lanes to keep in sync. */
export interface SyncedLanes {
  /** All breakers of the store. */
  shared(): LaneBreaker[]
  /** Breakers of lanes in use, and those that are not simply closed. */
  sharedInUse(): LaneBreaker[]
  /** The breaker that isolates all lanes, if each lane has its own. */
  readonly allLanes: LaneBreaker | undefined
  /** This pod's own breakers, and the store they are in; undefined without a quorum. */
  own(): { store: BreakerStore; breakers: QuorumBreaker[] } | undefined
  /** Once per round: drops lanes that were not used for long. */
  sweep(): void
}

export interface SyncLoopOptions {
  name: string
  pod: string
  clock: Clock
  lanes: SyncedLanes
  /** The store's breakers, or this pod's own while the store is unreachable. */
  breakers: BreakerStore
  pods: Store['pods']
  spec: BreakerSpec
  policy: Pick<CheckedPolicy, 'probeLeaseMs'>
  watch: StoreWatch | undefined
}

/**
 * Time between rounds. A lane whose state was received in the last half of it is not read, so a lost message is
 * repaired after one and a half of it at the latest, with up to `MOST_PER_SECOND` lanes in use.
 */
const SYNC_MS = 1_000
/** An isolation of all lanes is published; this is how often a lost message is looked for. */
const ALL_LANES_SYNC_MS = 5_000
/**
 * Lanes that a pod reads per second. Each takes 7 us of Redis time, and Redis serves all pods. Lanes with calls
 * learn more from the replies to their reports.
 */
const MOST_PER_SECOND = 50
/** Keys of one script: it blocks Redis, for less than 1 ms with this many. */
const MOST_IN_A_SYNC = 100

export class SyncLoop {
  readonly #options: SyncLoopOptions
  #timer: Timer | undefined
  /** Set while a heartbeat is in flight. */
  #beating: Promise<void> | undefined

  constructor(options: SyncLoopOptions) {
    this.#options = options
  }

  begin(): void {
    this.#beat()
    this.#nextRound()
  }

  /** Reads every lane, whenever its state was last received. */
  syncAll(): void {
    const { lanes, breakers } = this.#options
    void inBackground(() => readLanes(breakers, lanes.shared()))
    this.#syncOwn()
  }

  /** Ends the rounds. */
  stop(): void {
    this.#timer?.cancel()
  }

  /** Removes this pod from the pods that a quorum counts. */
  async leave(): Promise<void> {
    const { name, pod, pods, spec } = this.#options
    if (spec.quorum === 1) return
    // A heartbeat that arrives later would register this pod again.
    await this.#beating
    try {
      await pods.leave({ group: name, pod })
    } catch {
      // Its registration expires.
    }
  }

  #nextRound(): void {
    const { clock, lanes, policy } = this.#options
    const roundMs = Math.min(SYNC_MS, policy.probeLeaseMs / 3)
    this.#timer = clock.schedule(roundMs, () => {
      lanes.sweep()
      this.#sync(roundMs)
      this.#beat()
      this.#nextRound()
    })
    this.#timer.unref()
  }

  /** Every reply of the store contains the whole state, so lanes with a recent reply are in sync. */
  #sync(roundMs: number): void {
    const { lanes, breakers, clock } = this.#options
    const { allLanes } = lanes
    const sinceMs = clock.now() - roundMs / 2
    const behind = lanes
      .sharedInUse()
      .filter((each) => !each.isInSync(each === allLanes ? sinceMs - ALL_LANES_SYNC_MS : sinceMs))
    const most = Math.ceil((MOST_PER_SECOND * roundMs) / 1_000)
    void inBackground(() => readLanes(breakers, mostUrgent(behind, most)))
    this.#syncOwn()
  }

  #syncOwn(): void {
    const own = this.#options.lanes.own()
    if (own !== undefined) void inBackground(() => readLanes(own.store, own.breakers))
  }

  /** The store has to know the number of pods for a quorum. */
  #beat(): void {
    const { name, pod, pods, spec, watch } = this.#options
    if (spec.quorum === 1 || this.#beating !== undefined) return
    if (watch?.reachable === false) return
    const lifeUs = SYNC_MS * BEATS_IN_A_LIFE * 1_000
    this.#beating = inBackground(async () => {
      await pods.beat({ group: name, pod, lifeUs, snapshot: '' })
    }).then(() => {
      this.#beating = undefined
    })
  }
}

/** One round trip for `MOST_IN_A_SYNC` lanes. */
async function readLanes(
  store: BreakerStore,
  lanes: readonly Pick<LaneBreaker, 'stateRequest'>[],
): Promise<void> {
  for (let from = 0; from < lanes.length; from += MOST_IN_A_SYNC) {
    const requests = lanes.slice(from, from + MOST_IN_A_SYNC).map((lane) => lane.stateRequest())
    const views = await store.sync(requests.map(({ request }) => request))
    for (const [index, view] of views.entries()) requests[index]?.receive(view)
  }
}

/** All lanes with probes, because leases expire. Then lanes with the oldest reply, so each has its turn. */
function mostUrgent(lanes: readonly LaneBreaker[], most: number): readonly LaneBreaker[] {
  if (lanes.length <= most) return lanes
  const probing = lanes.filter((each) => each.hasProbes)
  const others = lanes
    .filter((each) => !each.hasProbes)
    .sort((one, other) => one.receivedMs - other.receivedMs)
  return [...probing, ...others.slice(0, Math.max(0, most - probing.length))]
}

/** Errors are ignored: the next round tries again. */
function inBackground(work: () => Promise<void>): Promise<void> {
  return work().catch(() => {})
}
