/**
 * Keeps the lanes of a breaker in step with the fleet. The store pushes every change; a sync once per round
 * repairs what a lost message left behind. The same rounds renew the leases of probes, count this pod for a
 * quorum, and drop lanes that were not used for long.
 */
import type { Clock, Timer } from '../../core/time/clock.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type { BreakerStore, Store } from '../../store/port.js'
import { BEATS_IN_A_LIFE } from '../membership.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { BreakerLanes } from './breaker-lanes.js'
import type { LaneBreaker } from './lane-breaker.js'
import type { CheckedPolicy } from './options.js'

export interface InStepOptions {
  name: string
  pod: string
  clock: Clock
  lanes: BreakerLanes
  /** The store's, or this pod's own while that is away. */
  breakers: BreakerStore
  pods: Store['pods']
  spec: BreakerSpec
  policy: Pick<CheckedPolicy, 'probeLeaseMs'>
  watch: StoreWatch | undefined
}

/**
 * Time between rounds. A lane that the store answered for in the last half of it is not asked about, so a lost
 * message is found after one and a half of it at the latest, with up to `MOST_PER_SECOND` lanes in use.
 */
const SYNC_MS = 1_000
/** That all lanes are isolated is pushed; this is how often a lost message is looked for. */
const WHOLE_SYNC_MS = 5_000
/**
 * Lanes that a pod asks about per second. Each takes 7 us of Redis time, and Redis serves all pods. Lanes with
 * calls learn more from the replies to their reports.
 */
const MOST_PER_SECOND = 50
/** Keys of one script: it blocks Redis, for less than 1 ms with this many. */
const MOST_IN_A_SYNC = 100

export class InStep {
  readonly #options: InStepOptions
  #timer: Timer | undefined
  /** Set while a beat is under way. */
  #beating: Promise<void> | undefined

  constructor(options: InStepOptions) {
    this.#options = options
  }

  begin(): void {
    this.#beat()
    this.#nextRound()
  }

  /** Of every lane, whenever the store last answered for it. */
  askAll(): void {
    const { lanes, breakers } = this.#options
    void attempt(() => ask(breakers, lanes.fleets()))
    this.#askPrivately()
  }

  /** No more rounds. */
  stop(): void {
    this.#timer?.cancel()
  }

  async leave(): Promise<void> {
    const { name, pod, pods, spec } = this.#options
    if (spec.quorum === 1) return
    // A beat that arrived after we left would bring us back.
    await this.#beating
    try {
      await pods.leave({ group: name, pod })
    } catch {
      // Then its time runs out.
    }
  }

  #nextRound(): void {
    const { clock, lanes, policy } = this.#options
    const roundMs = Math.min(SYNC_MS, policy.probeLeaseMs / 3)
    this.#timer = clock.schedule(roundMs, () => {
      lanes.sweep()
      this.#ask(roundMs)
      this.#beat()
      this.#nextRound()
    })
    this.#timer.unref()
  }

  /** Every answer of the store has the whole state, so a lane that it answered for lately is in step. */
  #ask(roundMs: number): void {
    const { lanes, breakers, clock } = this.#options
    const { whole } = lanes
    const sinceMs = clock.now() - roundMs / 2
    const behind = lanes
      .fleetsInUse()
      .filter((each) => !each.isInStep(each === whole ? sinceMs - WHOLE_SYNC_MS : sinceMs))
    const most = Math.ceil((MOST_PER_SECOND * roundMs) / 1_000)
    void attempt(() => ask(breakers, mostUrgent(behind, most)))
    this.#askPrivately()
  }

  #askPrivately(): void {
    const { lanes } = this.#options
    const { privateStore } = lanes
    if (privateStore === undefined) return
    void attempt(() =>
      ask(
        privateStore,
        lanes.list().flatMap(({ quorum }) => quorum ?? []),
      ),
    )
  }

  /** A quorum needs to know how many there are. */
  #beat(): void {
    const { name, pod, pods, spec, watch } = this.#options
    if (spec.quorum === 1 || this.#beating !== undefined) return
    if (watch?.reachable === false) return
    const lifeUs = SYNC_MS * BEATS_IN_A_LIFE * 1_000
    this.#beating = attempt(async () => {
      await pods.beat({ group: name, pod, lifeUs, snapshot: '' })
    }).then(() => {
      this.#beating = undefined
    })
  }
}

/** One round trip for `MOST_IN_A_SYNC` lanes. */
async function ask(store: BreakerStore, lanes: readonly Pick<LaneBreaker, 'ask'>[]): Promise<void> {
  for (let from = 0; from < lanes.length; from += MOST_IN_A_SYNC) {
    const asked = lanes.slice(from, from + MOST_IN_A_SYNC).map((lane) => lane.ask())
    const views = await store.sync(asked.map(({ request }) => request))
    for (const [index, view] of views.entries()) asked[index]?.hear(view)
  }
}

/** All lanes with probes, because leases run out. Then those whose last answer is oldest, so each has its turn. */
function mostUrgent(lanes: readonly LaneBreaker[], most: number): readonly LaneBreaker[] {
  if (lanes.length <= most) return lanes
  const probing = lanes.filter((each) => each.hasProbes)
  const others = lanes
    .filter((each) => !each.hasProbes)
    .sort((one, other) => one.heardMs - other.heardMs)
  return [...probing, ...others.slice(0, Math.max(0, most - probing.length))]
}

/** In the background: the next round tries again. */
function attempt(work: () => Promise<void>): Promise<void> {
  return work().catch(() => {})
}
