/**
 * Keeps the lanes of a breaker in step with the fleet. The store pushes every change; what a lost message left behind is
 * repaired by asking now and then. The same rounds renew the leases of probes, tell a quorum that this pod is
 * there, and drop lanes that nobody uses.
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
 * A lane of which nothing is heard is asked for so often. One of which something was heard in the
 * last half of that is not, so a lost message is found out after one and a half of it at the latest.
 */
const SYNC_MS = 1_000
/** That all lanes are isolated is pushed; how often to make sure that nothing was lost. */
const WHOLE_SYNC_MS = 5_000

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

  /** Of every lane, however lately it was heard of. */
  askAll(): void {
    this.#ask(Number.POSITIVE_INFINITY)
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

  /** Of a lane that the store has spoken of since then nothing is lost: every answer says how things are. */
  #ask(heardSinceMs: number): void {
    const { lanes, breakers } = this.#options
    const { whole, privateStore } = lanes
    const wholeSinceMs = heardSinceMs - WHOLE_SYNC_MS
    const behind = lanes
      .fleets()
      .filter((each) => !each.isInStep(each === whole ? wholeSinceMs : heardSinceMs))
    askTogether(breakers, behind)
    if (privateStore === undefined) return
    askTogether(
      privateStore,
      lanes.list().flatMap(({ quorum }) => quorum ?? []),
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

/** In one trip. */
function askTogether(store: BreakerStore, lanes: readonly Pick<LaneBreaker, 'ask'>[]): void {
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
