/**
 * What a breaker has seen while closed, and whether that is enough to trip it. With a quorum it is
 * kept for each pod; without, under one name for all. Twin: `redis/lua/include/breaker-tally.lua`.
 */
import { type BreakerSpec, FAILURE, SLOW } from '../breaker-spec.js'

type Counts = [calls: number, failures: number, slow: number]

export interface Tally {
  /** Of a time window, oldest first: since when, and what each pod saw. */
  slices: [startUs: number, Map<string, Counts>][]
  /** Of a window of calls, oldest first. */
  recent: [pod: string, kind: number, times: number][]
  /** Of the whole window, by pod. */
  sums: Map<string, Counts>
  /**
   * Failures in a row, by pod: since the last success of anybody, and since the pod's own; and when
   * the last one was.
   */
  runs: Map<string, [fleet: number, own: number, atUs: number]>
}

const SLICES = 10
/** For a window that counts calls: the state as a whole does not live longer either. */
const RUN_LIFE_US = 300_000_000
/** Without a quorum nobody asks who saw what. */
const EVERYBODY = '*'

export function emptyTally(): Tally {
  return { slices: [], recent: [], sums: new Map(), runs: new Map() }
}

/**
 * Forgets what has left the window. While a new configuration spreads, pods disagree about its
 * length; a slice knows when it began, so that each can go by its own.
 */
export function advance(tally: Tally, spec: BreakerSpec, now: number): void {
  if (spec.windowCalls > 0) forgetSlices(tally, now)
  else {
    forgetCalls(tally, 0)
    const sliceUs = sliceUsOf(spec)
    forgetSlices(tally, startOf(now, sliceUs) - SLICES * sliceUs)
  }
  for (const [pod, [, , atUs]] of tally.runs) {
    if (now - atUs >= (spec.windowUs || RUN_LIFE_US)) tally.runs.delete(pod)
  }
}

function sliceUsOf({ windowUs }: BreakerSpec): number {
  return Math.ceil(windowUs / SLICES)
}

function startOf(now: number, sliceUs: number): number {
  return Math.floor(now / sliceUs) * sliceUs
}

/** Those that began then, or earlier. */
function forgetSlices({ slices, sums }: Tally, startUs: number): void {
  while (slices[0] !== undefined && slices[0][0] <= startUs) {
    for (const [pod, counts] of slices[0][1]) add(sums, pod, counts, -1)
    slices.shift()
  }
}

export function count(
  tally: Tally,
  spec: BreakerSpec,
  by: string,
  kind: number,
  times: number,
  now: number,
): void {
  const pod = spec.quorum > 1 ? by : EVERYBODY
  const counts = countsOf(kind, times)
  add(tally.sums, pod, counts, 1)
  if (spec.windowCalls > 0) {
    addCalls(tally, pod, kind, times)
    forgetCalls(tally, spec.windowCalls)
  } else {
    add(sliceAt(tally, startOf(now, sliceUsOf(spec))), pod, counts, 1)
  }
  if (kind === FAILURE) {
    const [fleet, own] = tally.runs.get(pod) ?? [0, 0]
    tally.runs.set(pod, [fleet + times, own + times, now])
    return
  }
  tally.runs.delete(pod)
  for (const run of tally.runs.values()) run[0] = 0
}

function countsOf(kind: number, times: number): Counts {
  return [times, kind === FAILURE ? times : 0, kind === SLOW ? times : 0]
}

function sliceAt({ slices }: Tally, startUs: number): Map<string, Counts> {
  const newest = slices[slices.length - 1]
  if (newest !== undefined && newest[0] >= startUs) return newest[1]
  const counts = new Map<string, Counts>()
  slices.push([startUs, counts])
  return counts
}

function addCalls({ recent }: Tally, pod: string, kind: number, times: number): void {
  const newest = recent[recent.length - 1]
  if (newest?.[0] === pod && newest[1] === kind) newest[2] += times
  else recent.push([pod, kind, times])
}

/** But for the newest of them, so many. */
function forgetCalls({ recent, sums }: Tally, most: number): void {
  let over = -most
  for (const [, , times] of recent) over += times
  while (over > 0) {
    const oldest = recent[0] as Tally['recent'][number]
    const [pod, kind, times] = oldest
    const gone = Math.min(over, times)
    add(sums, pod, countsOf(kind, gone), -1)
    oldest[2] -= gone
    over -= gone
    if (oldest[2] === 0) recent.shift()
  }
}

function add(all: Map<string, Counts>, pod: string, counts: Counts, sign: 1 | -1): void {
  const sum = all.get(pod) ?? [0, 0, 0]
  for (let index = 0; index < 3; index++) (sum[index] as number) += sign * (counts[index] as number)
  if (sum[0] === 0) all.delete(pod)
  else all.set(pod, sum)
}

/** Everybody's calls, failures, slow calls, and failures in a row. */
export function totals({ sums, runs }: Tally): Seen {
  const all: Seen = [0, 0, 0, 0]
  for (const [calls, failures, slow] of sums.values()) {
    all[0] += calls
    all[1] += failures
    all[2] += slow
  }
  for (const [fleet] of runs.values()) all[3] += fleet
  return all
}

type Seen = [calls: number, failures: number, slow: number, run: number]

/** `live`: how many pods there are, as far as the store knows; 0 where none has said so yet. */
export function isTripped(tally: Tally, spec: BreakerSpec, live: number): boolean {
  // Not those that were counted, if there is a choice: some of them may be gone.
  const pods = live > 0 ? live : tally.sums.size
  const quorum = Math.min(spec.quorum, pods)
  if (quorum <= 1) return holds(spec, totals(tally))
  return holdsWithoutWorst(tally, spec, quorum - 1) || halfAgree(tally, spec, quorum, pods)
}

/** Divided, not multiplied: 7 of 100 are 0.07, but 0.07 times 100 is a little more than 7. */
function holds(spec: BreakerSpec, [calls, failures, slow, run]: Seen): boolean {
  if (spec.consecutive > 0 && run >= spec.consecutive) return true
  if (calls < spec.minimumCalls || calls === 0) return false
  const failing = spec.failureRate > 0 && failures / calls >= spec.failureRate
  return failing || (spec.slowRate > 0 && slow / calls >= spec.slowRate)
}

/** The worst are others in each respect: in failures, in slow calls, in failures in a row. */
function holdsWithoutWorst(tally: Tally, spec: BreakerSpec, leaveOut: number): boolean {
  const [calls, failures, slow, total] = totals(tally)
  const runs = Array.from(tally.runs.values(), ([fleet]) => fleet).sort((one, other) => other - one)
  let run = total
  for (const fleet of runs.slice(0, leaveOut)) run -= fleet
  const failing = sumOfWorst(tally, 1, spec.failureRate, leaveOut)
  const lagging = sumOfWorst(tally, 2, spec.slowRate, leaveOut)
  return (
    holds(spec, [calls - failing[0], failures - failing[1], 0, run]) ||
    holds(spec, [calls - lagging[0], 0, slow - lagging[1], 0])
  )
}

/**
 * Calls, and those of them that were bad, of the pods without which the share of bad ones would be
 * lowest: those that are furthest over the share. A pod may have the most failures just because it
 * has the most calls.
 */
function sumOfWorst({ sums }: Tally, bad: 1 | 2, share: number, most: number): [number, number] {
  const over = (counts: Counts) => counts[bad] - share * counts[0]
  const worst = [...sums.values()].sort(
    (one, other) => over(other) - over(one) || other[0] - one[0],
  )
  const sum: [number, number] = [0, 0]
  for (const counts of worst.slice(0, most)) {
    sum[0] += counts[0]
    sum[1] += counts[bad]
  }
  return sum
}

/**
 * Half of the pods see it, each on its own: then it is not the pods, even if the other half still
 * does well enough for all of them together.
 */
function halfAgree(tally: Tally, spec: BreakerSpec, quorum: number, pods: number): boolean {
  let agree = 0
  for (const [pod, [calls, failures, slow]] of tally.sums) {
    if (holds(spec, [calls, failures, slow, tally.runs.get(pod)?.[1] ?? 0])) agree++
  }
  return agree >= Math.max(quorum, Math.ceil(pods / 2))
}
