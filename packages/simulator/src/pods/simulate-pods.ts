/** Simulates a fleet of many pods and vendors with the real guards, and measures its load on the store. */
import { createSpillway } from 'spillway'
import { withoutNestedCalls } from 'spillway/internal'
import { createHarness, createRandom, createVendor, type PodTools } from 'spillway/testing'
import { drawFrom } from '../scenario/spread.js'
import { figuresOf, type Opening, type PodsFigures } from './figures.js'
import {
  assignVendors,
  CALL_TIMEOUT_MS,
  countPods,
  DEFAULT_PODS_PLAN,
  drawPauseMs,
  guardOf,
  outagesOf,
  type PodsPlan,
  SERVICE_MS,
} from './plan.js'

/** Pods start one after the other, so that their heartbeats are not at the same moment. */
const STARTING_MS = 5_000
const TRAVEL_MS = { min: 0.5, max: 2 }
const SLICES = 100

/** Options of `simulatePods()`. */
export interface SimulatePodsOptions {
  /** Seed of the random numbers. Range: any integer. Default: 1. */
  seed?: number
  /** Called with the fraction of the run that is done, 0 to 1. Default: none. */
  onProgress?: (part: number) => void
}

/**
 * Simulates many pods that share many vendors. The same plan and seed give the same figures.
 *
 * @example
 * const figures = await simulatePods({ pods: 100, durationMs: 60_000 })
 * console.log(figures.commandsPerSecond)
 */
export async function simulatePods(
  some: Partial<PodsPlan>,
  { seed = 1, onProgress = () => {} }: SimulatePodsOptions = {},
): Promise<PodsFigures> {
  const plan: PodsPlan = { ...DEFAULT_PODS_PLAN, ...some }
  const assigned = assignVendors(plan)
  const podsOf = countPods(assigned, plan.vendors)
  const openings: Opening[] = []
  let requests = 0
  let served = 0

  const harness = createHarness<void>({
    pods: 0,
    seed,
    connection: { latencyMs: drawFrom(plan.storeLatencyMs) },
    clock: { quick: true },
    create,
  })
  const { clock } = harness
  const vendors = Array.from({ length: plan.vendors }, (_, vendor) =>
    createVendor({
      clock,
      random: createRandom(seed * 31 + vendor),
      serviceMs: drawFrom(SERVICE_MS),
      travelMs: drawFrom(TRAVEL_MS),
      answers: 'throw',
    }),
  )

  function create({ name, store, random, clock: podClock }: PodTools): void {
    const pod = harness.pods.length
    const spillway = createSpillway({
      store,
      pod: name,
      clock: podClock,
      random,
      expectedPods: plan.pods,
    })
    const arrivals = createRandom(seed * 101 + pod)
    for (const vendor of assigned[pod]!) {
      const guard = spillway.guard(`vendor-${vendor}`, guardOf(plan))
      withoutNestedCalls(guard)
      guard.breaker?.onChange(({ from, to }) => {
        if (from === 'closed' && to === 'open') {
          openings.push({ vendor, pod, atMs: clock.now() - STARTING_MS })
        }
      })
      const call = () => vendors[vendor]!.call()
      const request = () => {
        if (clock.now() >= STARTING_MS + plan.durationMs) return
        requests++
        guard.run(call, { timeoutMs: CALL_TIMEOUT_MS }).then(() => served++, nothing)
        clock.schedule(drawPauseMs(plan, podsOf[vendor]!, arrivals), request)
      }
      const untilStartMs = STARTING_MS - clock.now()
      clock.schedule(untilStartMs + drawPauseMs(plan, podsOf[vendor]!, arrivals), request)
    }
  }

  for (const [vendor, each] of vendors.entries()) {
    for (const { fromMs, untilMs } of outagesOf(plan, vendor)) {
      clock.schedule(STARTING_MS + fromMs, () => each.failAll())
      clock.schedule(STARTING_MS + untilMs, () => each.recover())
    }
  }
  for (let pod = 0; pod < plan.pods; pod++) {
    harness.start()
    await harness.run(STARTING_MS / plan.pods)
  }
  const before = commandsOf(harness.pods)
  for (let slice = 0; slice < SLICES; slice++) {
    onProgress(slice / SLICES)
    await harness.run(plan.durationMs / SLICES)
  }
  const after = commandsOf(harness.pods)
  onProgress(1)
  return figuresOf(plan, {
    requests,
    served,
    commands: Object.fromEntries(
      Object.entries(after).map(([kind, count]) => [kind, count - (before[kind] ?? 0)]),
    ),
    arrivals: vendors.map(({ arrivals }) => arrivals.map((atMs) => atMs - STARTING_MS)),
    openings,
  })
}

function nothing(): void {}

function commandsOf(pods: readonly PodTools[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { store } of pods) {
    for (const [kind, count] of Object.entries(store.counts.byKind)) {
      counts[kind] = (counts[kind] ?? 0) + count
    }
  }
  return counts
}
