/**
 * What a closed breaker has counted, and whether that opens it. Twin:
 * `redis/lua/include/breaker-tally.lua`.
 *
 * The rates are taken over the calls that began in the window: those that finished, and those in
 * flight. Failures often end within milliseconds and successes after seconds. Counting only finished
 * calls would see nearly nothing but failures after a cold start. For the same reason a success counts
 * in the slice in which its call began, together with the failures of calls that began beside it.
 *
 * With a quorum calls are counted by pod, without one under a common name.
 */
import {
  type BreakerSpec,
  FAILURE,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  sliceUsOf,
  WINDOW_SLICES,
} from '../breaker-spec.js'

/** Finished calls, and how many of them failed or were slow. */
export interface Counts {
  calls: number
  failures: number
  slow: number
}

/** Everything that the conditions are about. */
export interface Totals extends Counts {
  inFlight: number
  /** Calls that were in flight together lately. */
  lately: number
  /** Failures in a row. */
  consecutive: number
}

export interface Tally {
  /** Of a window of time, oldest first: its beginning, and counts by pod. */
  slices: { startUs: number; counts: Map<string, Counts> }[]
  /** Of a window of calls, oldest first. */
  recent: { pod: string; kind: number; times: number }[]
  /** Of the whole window, by pod. */
  sums: Map<string, Counts>
  /** By pod, until it expires: the calls in flight now, and the last reported number except 0. */
  inFlight: Map<string, { calls: number; lately: number; untilUs: number }>
  /** Failures in a row, by pod: since any pod's last success, and since its own. */
  runs: Map<string, { fleet: number; own: number; atUs: number }>
}

/** For a window of calls; the state as a whole does not live longer either. */
const RUN_LIFE_US = 300_000_000
/** Without a quorum all pods are counted under this name. */
const ALL_PODS = '*'
/**
 * For every 20 finished calls, rounded up, one call in flight is not counted. Otherwise a `failureRate`
 * of 1 would never be reached while the callers of a dead downstream try again.
 */
const FINISHED_PER_IGNORED = 20

const SIDE_BY_SIDE = 2
/** A downstream with this part of the limit is well enough to stay in use. */
const FINE_SHARE = 0.6
/** Standard deviations that its number of bad calls practically never exceeds. */
const DEVIATIONS = 3

export function emptyTally(): Tally {
  return {
    slices: [],
    recent: [],
    sums: new Map(),
    inFlight: new Map(),
    runs: new Map(),
  }
}

/**
 * Drops what has left the window. While a new configuration spreads, pods disagree about its length;
 * a slice knows when it began, so each report is judged by the length its pod knows.
 */
export function advance(tally: Tally, spec: BreakerSpec, now: number): void {
  if (spec.windowCalls > 0) dropSlices(tally, now)
  else {
    keepLatestCalls(tally, 0)
    dropSlices(tally, windowStart(spec, now))
  }
  for (const [pod, { untilUs }] of tally.inFlight) {
    if (untilUs <= now) tally.inFlight.delete(pod)
  }
  for (const [pod, { atUs }] of tally.runs) {
    if (now - atUs >= (spec.windowUs || RUN_LIFE_US)) tally.runs.delete(pod)
  }
}

function sliceStart(spec: BreakerSpec, now: number): number {
  const sliceUs = sliceUsOf(spec.windowUs)
  return Math.floor(now / sliceUs) * sliceUs
}

/** Slices that began then or earlier are outside the window. */
function windowStart(spec: BreakerSpec, now: number): number {
  return sliceStart(spec, now) - WINDOW_SLICES * sliceUsOf(spec.windowUs)
}

function dropSlices({ slices, sums }: Tally, untilUs: number): void {
  while (slices[0] !== undefined && slices[0].startUs <= untilUs) {
    for (const [pod, counts] of slices[0].counts) add(sums, pod, counts, -1)
    slices.shift()
  }
}

/**
 * Replaces the number of calls in flight of a pod: the reported ones, and the ones that end
 * `later` in the same report.
 */
export function setInFlight(
  { inFlight }: Tally,
  pod: string,
  reported: number,
  later: number,
  forUs: number,
  now: number,
): void {
  const known = inFlight.get(pod)
  const lately = reported > 0 ? reported : (known?.lately ?? 0)
  const calls = reported + later
  if (forUs === 0 || calls + lately === 0) return void inFlight.delete(pod)
  const untilUs = reported > 0 ? now + forUs : (known?.untilUs ?? now + forUs)
  inFlight.set(pod, { calls, lately, untilUs })
}

/** Whether this kind of outcome is left out of the rates. */
export function isRepeated(kind: number): boolean {
  return kind === REPEATED_SUCCESS || kind === REPEATED_FAILURE
}

/** `slicesAgo`: the age of the calls when they ended, in slices of the window. */
export function count(
  tally: Tally,
  spec: BreakerSpec,
  by: string,
  [kind, times, slicesAgo = 0]: readonly [kind: number, times: number, slicesAgo?: number],
  now: number,
): void {
  const pod = spec.quorum > 1 ? by : ALL_PODS
  if (!isRepeated(kind)) {
    if (spec.windowCalls > 0) countInCalls(tally, spec, pod, kind, times)
    else countInTime(tally, spec, pod, kind, times, slicesAgo, now)
  }
  if (kind === FAILURE || kind === REPEATED_FAILURE) {
    const run = tally.runs.get(pod)
    const fleet = (run?.fleet ?? 0) + times
    tally.runs.set(pod, { fleet, own: (run?.own ?? 0) + times, atUs: now })
    return
  }
  tally.runs.delete(pod)
  for (const run of tally.runs.values()) run.fleet = 0
}

function countInCalls(
  tally: Tally,
  spec: BreakerSpec,
  pod: string,
  kind: number,
  times: number,
): void {
  const { recent } = tally
  add(tally.sums, pod, countsOf(kind, times), 1)
  const newest = recent[recent.length - 1]
  if (newest?.pod === pod && newest.kind === kind) newest.times += times
  else recent.push({ pod, kind, times })
  keepLatestCalls(tally, spec.windowCalls)
}

function countInTime(
  tally: Tally,
  spec: BreakerSpec,
  pod: string,
  kind: number,
  times: number,
  slicesAgo: number,
  now: number,
): void {
  const startUs = sliceStart(spec, now) - slicesAgo * sliceUsOf(spec.windowUs)
  // Began before the window, so the failures of calls that began beside it are no longer in it.
  if (startUs <= windowStart(spec, now)) return
  const counts = countsOf(kind, times)
  add(tally.sums, pod, counts, 1)
  add(sliceAt(tally, startUs), pod, counts, 1)
}

function countsOf(kind: number, times: number): Counts {
  return {
    calls: times,
    failures: kind === FAILURE ? times : 0,
    slow: kind === SLOW ? times : 0,
  }
}

/** The slice that this time belongs to: the latest that began by then, or a new one. */
function sliceAt({ slices }: Tally, startUs: number): Map<string, Counts> {
  let index = slices.length
  while (index > 0 && (slices[index - 1] as Tally['slices'][number]).startUs > startUs) index--
  const known = slices[index - 1]
  if (known?.startUs === startUs) return known.counts
  const counts = new Map<string, Counts>()
  slices.splice(index, 0, { startUs, counts })
  return counts
}

function keepLatestCalls({ recent, sums }: Tally, most: number): void {
  let over = -most
  for (const { times } of recent) over += times
  while (over > 0) {
    const oldest = recent[0] as Tally['recent'][number]
    const dropped = Math.min(over, oldest.times)
    add(sums, oldest.pod, countsOf(oldest.kind, dropped), -1)
    oldest.times -= dropped
    over -= dropped
    if (oldest.times === 0) recent.shift()
  }
}

function add(all: Map<string, Counts>, pod: string, counts: Counts, sign: 1 | -1): void {
  const sum = all.get(pod) ?? { calls: 0, failures: 0, slow: 0 }
  sum.calls += sign * counts.calls
  sum.failures += sign * counts.failures
  sum.slow += sign * counts.slow
  if (sum.calls === 0) all.delete(pod)
  else all.set(pod, sum)
}

/** Of all pods together. */
export function totals({ sums, inFlight, runs }: Tally): Totals {
  const all: Totals = { calls: 0, failures: 0, slow: 0, inFlight: 0, lately: 0, consecutive: 0 }
  for (const { calls, failures, slow } of sums.values()) {
    all.calls += calls
    all.failures += failures
    all.slow += slow
  }
  for (const { calls, lately } of inFlight.values()) {
    all.inFlight += calls
    all.lately += lately
  }
  for (const { fleet } of runs.values()) all.consecutive += fleet
  return all
}

/** `live`: the number of pods that the store knows; 0 if none has reported itself yet. */
export function isTripped(tally: Tally, spec: BreakerSpec, live: number): boolean {
  // Some of the pods that were counted may be gone, so the number of live ones is preferred.
  const pods = live > 0 ? live : tally.sums.size
  const quorum = Math.min(spec.quorum, pods)
  if (quorum <= 1) return holds(spec, totals(tally))
  return holdsWithoutWorst(tally, spec, quorum - 1) || halfAgree(tally, spec, quorum, pods)
}

/**
 * A row of failures has to be at least as long as the number of calls in flight, which are no
 * failures so far.
 */
function holds(spec: BreakerSpec, totals: Totals): boolean {
  const { calls, failures, slow, inFlight, lately, consecutive } = totals
  if (spec.consecutive > 0 && consecutive >= spec.consecutive && consecutive >= inFlight)
    return true
  if (calls < spec.minimumCalls || calls === 0) return false
  const all = calls + Math.max(0, inFlight - Math.ceil(calls / FINISHED_PER_IGNORED))
  return (
    isReached(spec.failureRate, failures, all, lately) ||
    isReached(spec.slowRate, slow, all, lately)
  )
}

/**
 * Shares are divided, not multiplied: 7 of 100 are 0.07, but 0.07 times 100 is a little more than 7.
 * Calls one after the other are counted exactly as configured. Of calls side by side only a sample has
 * ended at any time: then the bad ones also have to be more than chance produces at a share that is
 * clearly below the limit, unless all are bad.
 */
function isReached(share: number, bad: number, all: number, lately: number): boolean {
  if (share === 0 || bad / all < share) return false
  if (lately < SIDE_BY_SIDE) return true
  const fine = FINE_SHARE * share
  const byChance = fine * all + DEVIATIONS * Math.sqrt(fine * (1 - fine) * all)
  return bad >= Math.min(all, byChance)
}

/** The worst pods differ by condition: most over the failure rate, over the slow rate, longest row. */
function holdsWithoutWorst(tally: Tally, spec: BreakerSpec, leaveOut: number): boolean {
  const all = totals(tally)
  const runs = Array.from(tally.runs.values(), ({ fleet }) => fleet).sort((a, b) => b - a)
  let { consecutive } = all
  for (const fleet of runs.slice(0, leaveOut)) consecutive -= fleet
  const failing = sumOfWorst(tally, 'failures', spec.failureRate, leaveOut)
  const lagging = sumOfWorst(tally, 'slow', spec.slowRate, leaveOut)
  return (
    holds(spec, {
      calls: all.calls - failing.calls,
      failures: all.failures - failing.bad,
      slow: 0,
      inFlight: all.inFlight - failing.inFlight,
      lately: all.lately,
      consecutive,
    }) ||
    holds(spec, {
      calls: all.calls - lagging.calls,
      failures: 0,
      slow: all.slow - lagging.bad,
      inFlight: all.inFlight - lagging.inFlight,
      lately: all.lately,
      consecutive: 0,
    })
  )
}

/**
 * The counts of the pods without which the share of bad calls would be lowest: those furthest over
 * the share. A pod may have the most failures only because it has the most calls.
 */
function sumOfWorst(
  { sums, inFlight }: Tally,
  bad: 'failures' | 'slow',
  share: number,
  most: number,
): { calls: number; bad: number; inFlight: number } {
  const pods = Array.from(sums, ([pod, counts]) => {
    const running = inFlight.get(pod)?.calls ?? 0
    const all = counts.calls + running
    const over = counts[bad] - share * all
    return { calls: counts.calls, bad: counts[bad], inFlight: running, all, over }
  })
  pods.sort((a, b) => b.over - a.over || b.all - a.all || b.calls - a.calls)
  const sum = { calls: 0, bad: 0, inFlight: 0 }
  for (const each of pods.slice(0, most)) {
    sum.calls += each.calls
    sum.bad += each.bad
    sum.inFlight += each.inFlight
  }
  return sum
}

/**
 * Half of the pods see it, each on its own: then the cause is not in the pods, even if the other half
 * still does well enough for all of them together.
 */
function halfAgree(tally: Tally, spec: BreakerSpec, quorum: number, pods: number): boolean {
  let agree = 0
  for (const [pod, counts] of tally.sums) {
    const { calls: inFlight = 0, lately = 0 } = tally.inFlight.get(pod) ?? {}
    const consecutive = tally.runs.get(pod)?.own ?? 0
    if (holds(spec, { ...counts, inFlight, lately, consecutive })) agree++
  }
  return agree >= Math.max(quorum, Math.ceil(pods / 2))
}
