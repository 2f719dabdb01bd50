/** The pods of a run, and the connection of each pod to the store. */
import { createHarness, type Harness, type HarnessPod, type PodTools } from 'spillway/testing'
import type { CheckedPodsEvent, CheckedStoreEvent } from '../scenario/events.js'
import type { CheckedScenario } from '../scenario/read-scenario.js'
import { type CheckedSpread, drawFrom } from '../scenario/spread.js'
import type { SimulatedCall, SimulatedPod } from './pod.js'
import type { VendorLink } from './vendor-link.js'

const DRAIN_MS = 30_000

export interface FleetPod {
  readonly pod: SimulatedPod
  readonly link: VendorLink
}

interface Serving {
  readonly index: number
  readonly harness: HarnessPod<FleetPod>
  /** Requests that wait for an answer of this pod; they fail when it dies. */
  readonly running: Set<(error: unknown) => void>
}

export interface FleetOptions {
  readonly scenario: CheckedScenario
  readonly seed: number
  create(tools: PodTools, fleet: Fleet): FleetPod
}

export class Fleet {
  readonly harness: Harness<FleetPod>
  readonly #scenario: CheckedScenario
  /** In the order of their start, without draining pods. */
  readonly #serving: Serving[] = []
  readonly #draining = new Set<Promise<void>>()
  readonly #executed = { before: 0 }
  #next = 0
  /** Current faults of the store, for pods that start later. */
  #faults: Exclude<CheckedStoreEvent, 'restart'>[] = []

  constructor({ scenario, seed, create }: FleetOptions) {
    this.#scenario = scenario
    const { store } = scenario
    const connection = store === 'memory' ? {} : { ...store, latencyMs: drawFrom(store.latencyMs) }
    this.harness = createHarness<FleetPod>({
      seed,
      pods: 0,
      connection,
      clock: { quick: true },
      create: (tools) => create(tools, this),
    })
  }

  get size(): number {
    return this.#serving.length
  }

  /** Queued calls of all pods. */
  get waiting(): number {
    return this.#serving.reduce((sum, { harness }) => sum + harness.value.pod.waiting, 0)
  }

  /** Requests in flight. */
  get running(): number {
    return this.#serving.reduce((sum, { running }) => sum + running.size, 0)
  }

  /** Commands of the store since the last read. */
  commandsSince(): number {
    const executed = this.harness.pods.reduce((sum, { store }) => sum + store.counts.executed, 0)
    const since = executed - this.#executed.before
    this.#executed.before = executed
    return since
  }

  /** Sends to the named pod, or to the next one. Takes callbacks, because a promise per request slows a simulation noticeably. */
  send(call: SimulatedCall, answered: () => void, failed: (error: unknown) => void): void {
    const named = call.client.pod
    const serving =
      named === undefined
        ? this.#serving[this.#next++ % this.#serving.length]
        : this.#serving.find(({ index }) => index === named)
    if (serving === undefined) {
      this.harness.clock.schedule(1, () => failed(new Error('no pod is running')))
      return
    }
    const { running } = serving
    running.add(failed)
    // Requests that failed with the pod's death are not answered again.
    serving.harness.value.pod.run(call).then(
      () => {
        if (running.delete(failed)) answered()
      },
      (error) => {
        if (running.delete(failed)) failed(error)
      },
    )
  }

  start(): void {
    const { skewMs, driftPpm } = this.#scenario.clocks
    const { random, pods } = this.harness
    const wrong = { skewMs: (2 * random() - 1) * skewMs, driftPpm: (2 * random() - 1) * driftPpm }
    const harness = this.harness.start(wrong)
    this.#serving.push({ index: pods.length - 1, harness, running: new Set() })
    for (const fault of this.#faults) applyTo(harness, fault)
  }

  /** Drains the oldest pod. */
  stop(): void {
    const serving = this.#serving.shift()
    if (serving === undefined) return
    const closing = serving.harness.value.pod.close(DRAIN_MS)
    this.#draining.add(closing)
    void closing.finally(() => this.#draining.delete(closing))
  }

  /** Kills the oldest pod. */
  kill(): void {
    const serving = this.#serving.shift()
    if (serving === undefined) return
    this.harness.kill(serving.index)
    const failures = [...serving.running]
    serving.running.clear()
    for (const fail of failures) fail(new Error('the pod died'))
  }

  applyToPods(what: CheckedPodsEvent): void {
    if ('kill' in what) for (let each = 0; each < what.kill; each++) this.kill()
    else if ('start' in what) this.#repeat(what.start, what.everyMs, () => this.start())
    else if ('stop' in what) this.#repeat(what.stop, what.everyMs, () => this.stop())
    else this.#roll(what.roll, what.everyMs)
  }

  applyToStore(what: CheckedStoreEvent, pod: number | undefined): void {
    if (what === 'restart') return this.harness.restartStore()
    if (pod === undefined)
      this.#faults = [...this.#faults.filter((old) => !undoes(what, old)), what]
    for (const [index, each] of this.harness.pods.entries()) {
      if (each.alive && (pod === undefined || pod === index)) applyTo(each, what)
    }
  }

  linkOf(pod: number): VendorLink | undefined {
    const found = this.harness.pods[pod]
    return found?.alive ? found.value.link : undefined
  }

  async close(): Promise<void> {
    const closing = this.#serving.map(({ harness }) => harness.value.pod.close(0))
    await this.harness.settle(Promise.all([...closing, ...this.#draining]))
  }

  #roll(surge: number, everyMs: number): void {
    const old = this.#serving.length
    const rounds = Math.ceil(old / surge)
    this.#repeat(rounds, everyMs, (round) => {
      const some = Math.min(surge, old - round * surge)
      for (let each = 0; each < some; each++) this.start()
      // Starts a new pod before the old one drains.
      this.harness.clock.schedule(everyMs / 2, () => {
        for (let each = 0; each < some; each++) this.stop()
      })
    })
  }

  #repeat(times: number, everyMs: number, run: (round: number) => void): void {
    for (let round = 0; round < times; round++) {
      if (everyMs === 0) run(round)
      else this.harness.clock.schedule(round * everyMs, () => run(round))
    }
  }
}

function applyTo({ store }: PodTools, what: Exclude<CheckedStoreEvent, 'restart'>): void {
  if (what === 'down') store.goDown()
  else if (what === 'up') store.comeBack()
  else if (what === 'pause') store.loseRequests(1)
  else if (what === 'resume') store.loseRequests(0)
  else if ('loseReplies' in what) store.loseReplies(what.loseReplies)
  else if ('loseRequests' in what) store.loseRequests(what.loseRequests)
  else store.setLatency(drawFrom(what.latencyMs as CheckedSpread))
}

/** Of several faults of one kind, the last one applies. */
function undoes(now: CheckedStoreEvent, old: CheckedStoreEvent): boolean {
  return kindOf(now) === kindOf(old)
}

function kindOf(what: CheckedStoreEvent): string {
  if (what === 'down' || what === 'up') return 'connection'
  if (typeof what === 'string' || 'loseRequests' in what) return 'requests'
  return Object.keys(what)[0]!
}
