/**
 * The counts of a closed breaker; `trip-conditions.ts` decides whether that opens it. Twin:
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
import type { HungReport } from '../port.js'

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
  /** Latest start time among the calls that any pod got an answer to; 0 if unknown. */
  answeredUs: number
  /** By pod: calls that hung. */
  hung: Map<string, HungCalls>
}

/** Calls of one pod that took longer than answers usually do. */
export interface HungCalls {
  /** Latest start time among the calls that this pod got an answer to. */
  answeredUs: number
  /** How long answers usually take. */
  usualUs: number
  /** Calls that failed after more than that and began after the last answered one: when, and how many. */
  failed: [startUs: number, times: number][]
  /** Calls in flight that are older than that. */
  overdue: number
  reportedUs: number
}

/** For a window of calls; the state as a whole does not live longer either. */
const RUN_LIFE_US = 300_000_000
/** Without a quorum all pods are counted under this name. */
const ALL_PODS = '*'

export function emptyTally(): Tally {
  return {
    slices: [],
    recent: [],
    sums: new Map(),
    inFlight: new Map(),
    runs: new Map(),
    answeredUs: 0,
    hung: new Map(),
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
  const lifeUs = spec.windowUs || RUN_LIFE_US
  for (const [pod, { atUs }] of tally.runs) {
    if (now - atUs >= lifeUs) tally.runs.delete(pod)
  }
  for (const [pod, { reportedUs }] of tally.hung) {
    if (now - reportedUs >= lifeUs) tally.hung.delete(pod)
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

/** Replaces the calls of a pod that hung. `usualUs` is 0 if it does not know how long calls usually take. */
export function setHung(
  tally: Tally,
  pod: string,
  report: HungReport | undefined,
  usualUs: number,
  now: number,
): void {
  if (report === undefined || usualUs === 0) return void tally.hung.delete(pod)
  const { answeredAgoUs, failed, overdue } = report
  const answeredUs = now - answeredAgoUs
  tally.answeredUs = Math.max(tally.answeredUs, answeredUs)
  if (failed.length === 0 && overdue === 0) return void tally.hung.delete(pod)
  tally.hung.set(pod, {
    answeredUs,
    usualUs,
    failed: failed.map(([agoUs, times]) => [now - agoUs, times]),
    overdue,
    reportedUs: now,
  })
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

/** Sets the counts of an open breaker from its totals. They never leave the window: closing clears them. */
export function keepTotals(
  tally: Tally,
  counted: Counts & { consecutive: number },
  now: number,
): void {
  const { calls, failures, slow, consecutive } = counted
  tally.sums.set(ALL_PODS, { calls, failures, slow })
  tally.runs.set(ALL_PODS, { fleet: consecutive, own: consecutive, atUs: now })
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
