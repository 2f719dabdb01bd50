/** Simulates a fleet of many pods and vendors with the real guards, and measures its load on the store. */
import type { Clock } from 'spillway'
import {
  createHarness,
  createRandom,
  createVendor,
  type PodTools,
  type Vendor,
} from 'spillway/testing'
import { drawFrom } from '../scenario/spread.js'
import { figuresOf, type PodsFigures } from './figures.js'
import {
  assignVendors,
  countPods,
  DEFAULT_PODS_PLAN,
  outagesOf,
  type PodsPlan,
  SERVICE_MS,
} from './plan.js'
import { type PodsCounts, startPod } from './simulated-pod.js'

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
  const counts: PodsCounts = { requests: 0, served: 0, openings: [] }
  const harness = createHarness<void>({
    pods: 0,
    seed,
    connection: { latencyMs: drawFrom(plan.storeLatencyMs) },
    clock: { quick: true },
    create(tools) {
      const pod = harness.pods.length
      const own = assigned[pod]!
      startPod(tools, { plan, seed, pod, own, vendors, podsOf, clock, fromMs: STARTING_MS, counts })
    },
  })
  const { clock } = harness
  const vendors = createVendors(plan, seed, clock)
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
    ...counts,
    commands: Object.fromEntries(
      Object.entries(after).map(([kind, count]) => [kind, count - (before[kind] ?? 0)]),
    ),
    arrivals: vendors.map(({ arrivals }) => arrivals.map((atMs) => atMs - STARTING_MS)),
  })
}

/** The vendors of the plan, with their outages. */
function createVendors(plan: PodsPlan, seed: number, clock: Clock): Vendor[] {
  return Array.from({ length: plan.vendors }, (_, index) => {
    const vendor = createVendor({
      clock,
      random: createRandom(seed * 31 + index),
      serviceMs: drawFrom(SERVICE_MS),
      travelMs: drawFrom(TRAVEL_MS),
      answers: 'throw',
    })
    for (const { fromMs, untilMs } of outagesOf(plan, index)) {
      clock.schedule(STARTING_MS + fromMs, () => vendor.failAll())
      clock.schedule(STARTING_MS + untilMs, () => vendor.recover())
    }
    return vendor
  })
}

/** Commands of all pods so far, by kind. */
function commandsOf(pods: readonly PodTools[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { store } of pods) {
    for (const [kind, count] of Object.entries(store.counts.byKind)) {
      counts[kind] = (counts[kind] ?? 0) + count
    }
  }
  return counts
}
