/**
 * Keeps the lanes of a breaker in step with the fleet. The store pushes every change; a sync once per round
 * repairs what a lost message left behind. The same rounds renew the leases of probes, count this pod for a
 * quorum, and drop lanes that were not used for long.
 */
import type { Clock, Timer } from '../../core/clock.js'
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
 * message is found after one and a half of it at the latest, with up to `MOST_IN_A_SYNC` lanes in use.
 */
const SYNC_MS = 1_000
/** That all lanes are isolated is pushed; this is how often a lost message is looked for. */
const WHOLE_SYNC_MS = 5_000
/** Keys of one script: it blocks Redis, for about 1 ms with this many. */
const MOST_IN_A_SYNC = 200

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
    void attempt(async () => {
      const all = lanes.fleets()
      for (let from = 0; from < all.length; from += MOST_IN_A_SYNC) {
        await ask(breakers, all.slice(from, from + MOST_IN_A_SYNC))
      }
    })
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
      this.#ask(clock.now() - roundMs / 2)
      this.#beat()
      this.#nextRound()
    })
    this.#timer.unref()
  }

  /**
   * Every answer of the store has the whole state, so a lane that it answered for since then is in step. With
   * more lanes than fit into one sync, those with probes come first, then those not heard of for longest.
   */
  #ask(heardSinceMs: number): void {
    const { lanes, breakers } = this.#options
    const { whole } = lanes
    const wholeSinceMs = heardSinceMs - WHOLE_SYNC_MS
    const behind = lanes
      .fleetsInUse()
      .filter((each) => !each.isInStep(each === whole ? wholeSinceMs : heardSinceMs))
    if (behind.length > MOST_IN_A_SYNC) behind.sort(byUrgency)
    void attempt(() => ask(breakers, behind.slice(0, MOST_IN_A_SYNC)))
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

/** In one round trip. */
async function ask(store: BreakerStore, lanes: readonly Pick<LaneBreaker, 'ask'>[]): Promise<void> {
  if (lanes.length === 0) return
  const asked = lanes.map((lane) => lane.ask())
  const views = await store.sync(asked.map(({ request }) => request))
  for (const [index, view] of views.entries()) asked[index]?.hear(view)
}

/** Leases of probes run out; everything else can wait for a later round. */
function byUrgency(one: LaneBreaker, other: LaneBreaker): number {
  return Number(other.hasProbes) - Number(one.hasProbes) || one.heardMs - other.heardMs
}

/** In the background: the next round tries again. */
function attempt(work: () => Promise<void>): Promise<void> {
  return work().catch(() => {})
}
