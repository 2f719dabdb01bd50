/** One pod of `simulatePods`: a guard for each of its vendors, and random requests to each of them. */
import { type Clock, createSpillway, type Guard } from 'spillway'
import { withoutNestedCalls } from 'spillway/internal'
import { createRandom, type PodTools, type Vendor } from 'spillway/testing'
import type { Opening } from './figures.js'
import { CALL_TIMEOUT_MS, drawPauseMs, guardOf, type PodsPlan } from './plan.js'

/** Counts and times of all pods so far. */
export interface PodsCounts {
  requests: number
  served: number
  readonly openings: Opening[]
}

export interface SimulatedPodOptions {
  readonly plan: PodsPlan
  readonly seed: number
  /** Index of the pod. */
  readonly pod: number
  /** Indexes of its vendors. */
  readonly own: readonly number[]
  /** All vendors. */
  readonly vendors: readonly Vendor[]
  /** By vendor: the number of its pods. */
  readonly podsOf: readonly number[]
  /** The clock of the fleet. That of a pod begins when the pod starts. */
  readonly clock: Clock
  /** Requests are sent from this time on, for `plan.durationMs`. */
  readonly fromMs: number
  readonly counts: PodsCounts
}

/** Starts a pod. Its guards and timers run until the end of the simulation. */
export function startPod({ name, store, random, clock }: PodTools, options: SimulatedPodOptions) {
  const { plan, seed, pod, own, counts, fromMs } = options
  const spillway = createSpillway({ store, pod: name, clock, random, expectedPods: plan.pods })
  const arrivals = createRandom(seed * 101 + pod)
  for (const vendor of own) {
    const guard = spillway.guard(`vendor-${vendor}`, guardOf(plan))
    withoutNestedCalls(guard)
    guard.breaker?.onChange(({ from, to }) => {
      if (from !== 'closed' || to !== 'open') return
      counts.openings.push({ vendor, pod, atMs: options.clock.now() - fromMs })
    })
    sendRequests(guard, vendor, () => drawPauseMs(plan, options.podsOf[vendor]!, arrivals), options)
  }
}

function sendRequests(
  guard: Guard,
  vendor: number,
  pauseMs: () => number,
  { plan, vendors, clock, fromMs, counts }: SimulatedPodOptions,
): void {
  const call = () => vendors[vendor]!.call()
  const request = () => {
    if (clock.now() >= fromMs + plan.durationMs) return
    counts.requests++
    guard.run(call, { timeoutMs: CALL_TIMEOUT_MS }).then(() => counts.served++, nothing)
    clock.schedule(pauseMs(), request)
  }
  clock.schedule(fromMs - clock.now() + pauseMs(), request)
}

function nothing(): void {}
