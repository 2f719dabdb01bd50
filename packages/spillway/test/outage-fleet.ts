/** A fleet under saturating load in virtual time with a counting vendor, for outages. */
import { onEvent, SpillwayError } from 'spillway'
import {
  createHarness,
  createVendor,
  type Harness,
  type HarnessPod,
  sleep,
  type Vendor,
} from 'spillway/testing'
import { createSpillway, type Guard, type GuardOptions, type Spillway } from '../src/index.js'

export interface OutageFleetOptions {
  seed?: number
  pods?: number
  limit?: number
  windowMs?: number
  /** Number of callers in a pod that call without pause. */
  callers?: (pod: number) => number
  guard?: GuardOptions
  /** The lane of a caller. Default: the default lane. */
  lane?: (caller: number) => string
  expectedPods?: number
  /** Makes the store unreachable before the pods start. */
  down?: boolean
}

interface PodValue {
  spillway: Spillway
  guard: Guard
}

export interface OutageFleet {
  readonly fleet: Harness<PodValue>
  readonly vendor: Vendor
  readonly limit: number
  readonly windowMs: number
  /** Number of refused or failed calls by code. */
  readonly refusals: Record<string, number>
  /** The longest time a call spent in its guard before it was made or refused. */
  readonly longestMs: number
  /** Events about degraded and restored state, with their time. */
  readonly events: { type: string; atMs: number }[]
  run(ms: number): Promise<void>
  status(pod?: number): string | undefined
  /** The most calls at the vendor in any window, in per cent of the limit. */
  worst(): number
  /** Calls at the vendor in the last `lastMs`, in per cent of the limit. */
  used(lastMs: number): number
  each(act: (pod: HarnessPod<PodValue>, index: number) => void): void
  stop(): Promise<void>
}

export function createOutageFleet(options: OutageFleetOptions = {}): OutageFleet {
  const { seed = 1, pods = 4, limit = 200, windowMs = 10_000, callers = () => 10 } = options
  const refusals: Record<string, number> = {}
  const events: { type: string; atMs: number }[] = []
  const seen = { longestMs: 0 }
  let over = false
  const fleet = createHarness<PodValue>({
    seed,
    pods: 0,
    clock: { quick: true },
    connection: { latencyMs: 1 },
    create: ({ name, clock, store, random }) => {
      if (options.down) store.goDown()
      const { expectedPods = 1 } = options
      const spillway = createSpillway({ store, clock, random, pod: name, expectedPods })
      const guard = spillway.guard('vendor', {
        limits: [{ limit, windowMs }],
        ...options.guard,
      })
      return { spillway, guard }
    },
  })
  const { clock, random } = fleet
  const vendor = createVendor({ clock, random, serviceMs: 20, travelMs: 1 })
  const stopListening = onEvent(({ type }) => {
    if (type.startsWith('store.')) events.push({ type, atMs: clock.now() })
  })

  async function keepCalling(pod: HarnessPod<PodValue>, caller: number): Promise<void> {
    const runOptions = options.lane === undefined ? {} : { lane: options.lane(caller) }
    while (!over && pod.alive) {
      const startMs = clock.now()
      let reachedMs: number | undefined
      try {
        await pod.value.guard.run(() => {
          reachedMs = clock.now()
          return vendor.call()
        }, runOptions)
      } catch (error) {
        const code = error instanceof SpillwayError ? error.code : 'other'
        refusals[code] = (refusals[code] ?? 0) + 1
        reachedMs ??= clock.now()
        seen.longestMs = Math.max(seen.longestMs, reachedMs - startMs)
        await sleep(clock, 20 + random() * 30)
        continue
      }
      seen.longestMs = Math.max(seen.longestMs, (reachedMs ?? startMs) - startMs)
    }
  }
  for (let index = 0; index < pods; index++) {
    const pod = fleet.start()
    for (let caller = 0; caller < callers(index); caller++) void keepCalling(pod, caller)
  }

  return {
    fleet,
    vendor,
    limit,
    windowMs,
    refusals,
    events,
    get longestMs() {
      return seen.longestMs
    },
    run: (ms) => fleet.run(ms),
    status: (pod = 0) => fleet.pods[pod]?.value.guard.snapshot().store?.status,
    worst: () => (vendor.mostInAnyWindow(windowMs) / limit) * 100,
    used: (lastMs) => {
      const fromMs = clock.now() - lastMs
      const calls = vendor.arrivals.filter((atMs) => atMs >= fromMs).length
      return (calls / ((limit * lastMs) / windowMs)) * 100
    },
    each: (act) => {
      for (const [index, pod] of fleet.pods.entries()) if (pod.alive) act(pod, index)
    },
    async stop() {
      over = true
      stopListening()
      await fleet.run(1_000)
    },
  }
}
