/** A fleet of many pods and many vendors: what `simulatePods` simulates, and what `npm run e2e -- pods` runs. */
import type { GuardOptions } from 'spillway'
import type { Random } from 'spillway/testing'
import type { CheckedSpread } from '../scenario/spread.js'

/** Many pods that share many vendors. All vendors are alike. */
export interface PodsPlan {
  /** Number of pods. Range: integers from 1. */
  pods: number
  /** Number of vendors. Range: integers from 1. */
  vendors: number
  /** Vendors that a pod calls; more if a vendor would be used by fewer than two pods. Range: integers from 1. */
  vendorsPerPod: number
  /** Measured time. Range: from 1 ms. */
  durationMs: number
  /** Contract of each vendor: calls in any window. Range: integers from 1. */
  limit: number
  /** Length of the window. Range: from 1 ms. */
  windowMs: number
  /** Requests for each vendor, as a share of its contract. Range: above 0. */
  load: number
  /** Every vendor fails this often. Range: from 1 ms. */
  outageEveryMs: number
  /** How long it fails. Range: from 1 ms. */
  outageMs: number
  /** Round-trip time to the store, in milliseconds. */
  storeLatencyMs: CheckedSpread
}

/** The plan of `spillway simulate pods`. */
export const DEFAULT_PODS_PLAN: PodsPlan = {
  pods: 1_000,
  vendors: 100,
  vendorsPerPod: 2,
  durationMs: 3_600_000,
  limit: 30,
  windowMs: 10_000,
  load: 1.1,
  outageEveryMs: 600_000,
  outageMs: 5_000,
  storeLatencyMs: { min: 0.3, max: 1.5 },
}

const LEAST_PODS_PER_VENDOR = 2
/** How long a call takes at the vendor. */
export const SERVICE_MS = { min: 40, max: 60 }
/** How long a caller waits. */
export const CALL_TIMEOUT_MS = 4_000
const OPEN_MS = 2_000

/** The guard that every pod has for each of its vendors. */
export function guardOf({ limit, windowMs }: PodsPlan): GuardOptions {
  return {
    limits: [{ limit, windowMs }],
    // Processes that share a machine wait for it longer than pods on machines of their own.
    jitterMs: 200,
    breaker: { failureRate: 0.5, windowMs: 5_000, minimumCalls: 5, openMs: OPEN_MS },
    queue: { size: 20, timeoutMs: 2_000 },
    concurrency: { limit: 20 },
    timeout: { callMs: 2_000 },
  }
}

/** The vendors of each pod. */
export function assignVendors({ pods, vendors, vendorsPerPod }: PodsPlan): number[][] {
  const least = Math.ceil((vendors * LEAST_PODS_PER_VENDOR) / pods)
  const each = Math.min(vendors, Math.max(vendorsPerPod, least))
  return Array.from({ length: pods }, (_, pod) =>
    Array.from({ length: each }, (_, index) => (pod * each + index) % vendors),
  )
}

/** The number of pods of each vendor. */
export function countPods(assigned: readonly (readonly number[])[], vendors: number): number[] {
  const counts = new Array<number>(vendors).fill(0)
  for (const own of assigned) for (const vendor of own) counts[vendor]!++
  return counts
}

/** Draws the time until a pod's next request for a vendor. */
export function drawPauseMs(plan: PodsPlan, podsOfVendor: number, random: Random): number {
  const { limit, windowMs, load } = plan
  return (-Math.log(1 - random()) * windowMs * podsOfVendor) / (limit * load)
}

export interface Outage {
  readonly fromMs: number
  readonly untilMs: number
}

/** When a vendor fails. The vendors take turns, so that their outages are spread over time. */
export function outagesOf(plan: PodsPlan, vendor: number): Outage[] {
  const { vendors, durationMs, outageEveryMs, outageMs } = plan
  const outages: Outage[] = []
  const first = (outageEveryMs * (vendor + 1)) / (vendors + 1)
  for (let fromMs = first; fromMs + outageMs <= durationMs; fromMs += outageEveryMs) {
    outages.push({ fromMs, untilMs: fromMs + outageMs })
  }
  return outages
}

/** From an outage's end until the breaker has closed and a window has passed. */
export function settleMs({ windowMs }: PodsPlan): number {
  return 3 * OPEN_MS + windowMs
}
