/** The figures of a fleet, computed alike from a simulated and from a real run. */
import {
  assignVendors,
  countPods,
  type Outage,
  outagesOf,
  type PodsPlan,
  settleMs,
} from './plan.js'

/** A pod's breaker changed from closed to open. */
export interface Opening {
  /** Index of the vendor. */
  readonly vendor: number
  /** Index of the pod. */
  readonly pod: number
  /** When it opened. */
  readonly atMs: number
}

/** The events of a run. Times count from the start of the measurement. */
export interface PodsRecord {
  /** Requests of all callers. */
  readonly requests: number
  /** Requests that were served. */
  readonly served: number
  /** Commands that the store received, by kind. */
  readonly commands: Readonly<Record<string, number>>
  /** By vendor: when calls arrived, in order. */
  readonly arrivals: readonly ArrayLike<number>[]
  /** Breakers that opened, by pod. */
  readonly openings: readonly Opening[]
}

/** Load and errors of a fleet of many pods. */
export interface PodsFigures {
  /** Number of pods. */
  pods: number
  /** Number of vendors. */
  vendors: number
  /** Most vendors of a pod. */
  vendorsPerPod: number
  /** Mean number of pods that call a vendor. */
  podsPerVendor: number
  /** Measured time. */
  durationMs: number
  /** Requests of all callers. */
  requests: number
  /** Share of the requests that were served. */
  served: number
  /** Commands at the store. */
  commandsPerSecond: number
  /** Commands at the store for each pod. */
  commandsPerPodSecond: number
  /** Commands at the store per second, by kind. */
  commandsByKind: Record<string, number>
  /**
   * Calls that arrived outside outages, as a share of the contract: below 1 is under-use. Undefined if the run is not
   * longer than a window.
   */
  limitUse: number | undefined
  /** Most calls in any window of any vendor, as a share of the limit: above 1 is overshoot. */
  worstWindow: number
  /** How fast pods agree that a breaker is open. */
  breaker: {
    /** Times that a breaker opened for its first pod. */
    openings: number
    /** Mean share of the vendor's pods that opened in the same outage. */
    agreed: number
    /** From the first pod to the last, median of all openings. */
    spreadP50Ms: number
    /** From the first pod to the last, 99th percentile of all openings. */
    spreadP99Ms: number
    /** From the first pod to the last, the longest. */
    spreadMostMs: number
  }
}

/** Computes the figures of a run. */
export function figuresOf(plan: PodsPlan, record: PodsRecord): PodsFigures {
  const { pods, vendors, durationMs } = plan
  const seconds = durationMs / 1_000
  const assigned = assignVendors(plan)
  const commands = Object.values(record.commands).reduce((sum, each) => sum + each, 0)
  const kinds = Object.entries(record.commands).sort(([one], [other]) => (one < other ? -1 : 1))
  return {
    pods,
    vendors,
    vendorsPerPod: assigned[0]!.length,
    podsPerVendor: (pods * assigned[0]!.length) / vendors,
    durationMs,
    requests: record.requests,
    served: record.served / Math.max(1, record.requests),
    commandsPerSecond: commands / seconds,
    commandsPerPodSecond: commands / seconds / pods,
    commandsByKind: Object.fromEntries(kinds.map(([kind, count]) => [kind, count / seconds])),
    limitUse: limitUse(plan, record.arrivals),
    worstWindow:
      Math.max(...record.arrivals.map((each) => mostInAnyWindow(each, plan.windowMs))) / plan.limit,
    breaker: agreement(plan, record.openings, countPods(assigned, vendors)),
  }
}

/** Leaves out the first window and the times around outages, when breakers refuse calls. */
function limitUse(plan: PodsPlan, arrivals: PodsRecord['arrivals']): number | undefined {
  const { durationMs, windowMs, limit } = plan
  let used = 0
  let allowed = 0
  for (const [vendor, times] of arrivals.entries()) {
    const outages = outagesOf(plan, vendor)
    let fromMs = windowMs
    for (const { fromMs: failsMs, untilMs } of [
      ...outages,
      { fromMs: durationMs, untilMs: durationMs },
    ]) {
      if (failsMs > fromMs) {
        used += countBetween(times, fromMs, failsMs)
        allowed += (limit * (failsMs - fromMs)) / windowMs
      }
      fromMs = Math.max(fromMs, untilMs + settleMs(plan))
    }
  }
  return allowed === 0 ? undefined : used / allowed
}

function countBetween(times: ArrayLike<number>, fromMs: number, untilMs: number): number {
  let count = 0
  for (let at = 0; at < times.length; at++) {
    if (times[at]! >= fromMs && times[at]! < untilMs) count++
  }
  return count
}

/** Two calls exactly one window apart are in different windows. */
function mostInAnyWindow(times: ArrayLike<number>, windowMs: number): number {
  let most = 0
  let oldest = 0
  for (let newest = 0; newest < times.length; newest++) {
    while (times[oldest]! + windowMs <= times[newest]!) oldest++
    most = Math.max(most, newest - oldest + 1)
  }
  return most
}

function agreement(
  plan: PodsPlan,
  openings: readonly Opening[],
  podsOf: readonly number[],
): PodsFigures['breaker'] {
  const spreads: number[] = []
  let agreed = 0
  for (let vendor = 0; vendor < plan.vendors; vendor++) {
    const own = openings.filter((each) => each.vendor === vendor)
    for (const outage of outagesOf(plan, vendor)) {
      const first = firstOpenings(own, outage)
      if (first.length === 0) continue
      spreads.push(first.at(-1)! - first[0]!)
      agreed += first.length / podsOf[vendor]!
    }
  }
  spreads.sort((one, other) => one - other)
  const percentile = (part: number) => spreads[Math.ceil(spreads.length * part) - 1] ?? 0
  return {
    openings: spreads.length,
    agreed: spreads.length === 0 ? 0 : agreed / spreads.length,
    spreadP50Ms: percentile(0.5),
    spreadP99Ms: percentile(0.99),
    spreadMostMs: percentile(1),
  }
}

/** When each pod opened first during an outage, in order. */
function firstOpenings(openings: readonly Opening[], { fromMs, untilMs }: Outage): number[] {
  const byPod = new Map<number, number>()
  for (const { pod, atMs } of openings) {
    if (atMs < fromMs || atMs >= untilMs) continue
    byPod.set(pod, Math.min(atMs, byPod.get(pod) ?? Number.POSITIVE_INFINITY))
  }
  return [...byPod.values()].sort((one, other) => one - other)
}
