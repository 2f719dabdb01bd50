/**
 * Whether the counts of a closed breaker open it. Twin: `redis/lua/include/breaker-conditions.lua`.
 *
 * Three conditions, one is enough: failures in a row; a share of bad calls in the window; and calls that
 * hang, which a window full of earlier successes would hide for several timeouts.
 */
import type { BreakerSpec } from '../breaker-spec.js'
import { type Tally, type Totals, totals } from './tally.js'

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

/** A downstream hangs if nothing was answered for the usual duration and this part of the window, ... */
const SILENT_SHARE = 1 / 30
/** ... or this time, if that is shorter. Reports of answers may be late by a tenth of it. */
const LONGEST_SILENCE_US = 1_000_000
/** The probability by chance below which a row of calls that hung means that the downstream hangs. */
const CHANCE = 1e-6

/** `live`: the number of pods that the store knows; 0 if none has reported itself yet. */
export function isTripped(tally: Tally, spec: BreakerSpec, live: number, now: number): boolean {
  // Some of the counted pods may have ended, so the number of live ones is preferred.
  const pods = live > 0 ? live : tally.sums.size
  const quorum = Math.min(spec.quorum, pods)
  if (quorum <= 1) return holds(spec, totals(tally)) || isHanging(tally, spec, 0, now)
  return (
    holdsWithoutWorst(tally, spec, quorum - 1) ||
    isHanging(tally, spec, quorum - 1, now) ||
    halfAgree(tally, spec, quorum, pods, now)
  )
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

/** Calls that hung, of one pod or of several. */
interface Hang {
  /** Calls that hung, failed, and began after the last answered one. */
  failed: number
  /** Calls in flight that are older than usual. */
  overdue: number
  answeredUs: number
  usualUs: number
}

/** The whole fleet without the `leaveOut` pods in which most calls hung. */
function isHanging(tally: Tally, spec: BreakerSpec, leaveOut: number, now: number): boolean {
  if (tally.hung.size <= leaveOut) return false
  const { answeredUs } = tally
  const pods = Array.from(tally.hung.values(), ({ failed, overdue, usualUs }) => {
    return { failed: failedSince(failed, answeredUs), overdue, usualUs }
  })
  pods.sort((a, b) => b.failed - a.failed || b.overdue - a.overdue)
  const sum: Hang = { failed: 0, overdue: 0, answeredUs, usualUs: 0 }
  for (const [index, { failed, overdue, usualUs }] of pods.entries()) {
    sum.usualUs = Math.max(sum.usualUs, usualUs)
    if (index < leaveOut) continue
    sum.failed += failed
    sum.overdue += overdue
  }
  return hangs(spec, sum, totals(tally), now)
}

function failedSince(failed: readonly (readonly [number, number])[], answeredUs: number): number {
  let sum = 0
  for (const [startUs, times] of failed) if (startUs > answeredUs) sum += times
  return sum
}

/**
 * Every call that began after the last answered one has failed or is overdue, for long enough and often
 * enough that the failure rate of the window so far does not explain it.
 */
function hangs(
  { failureRate, minimumCalls, windowUs }: BreakerSpec,
  { failed, overdue, answeredUs, usualUs }: Hang,
  { calls, failures }: Pick<Totals, 'calls' | 'failures'>,
  now: number,
): boolean {
  if (failureRate === 0 || failed === 0 || failed < minimumCalls || answeredUs === 0) return false
  if (failed / (failed + overdue) < failureRate) return false
  const silenceUs = Math.min(LONGEST_SILENCE_US, windowUs * SILENT_SHARE || LONGEST_SILENCE_US)
  if (now - answeredUs < usualUs + silenceUs) return false
  const callsBefore = Math.max(0, calls - failed)
  const failuresBefore = Math.max(0, Math.min(callsBefore, failures - failed))
  const usualRate = (failuresBefore + 1) / (callsBefore + 2)
  return failed * Math.log(usualRate) <= Math.log(CHANCE)
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
function halfAgree(
  tally: Tally,
  spec: BreakerSpec,
  quorum: number,
  pods: number,
  now: number,
): boolean {
  let agree = 0
  for (const [pod, counts] of tally.sums) {
    const { calls: inFlight = 0, lately = 0 } = tally.inFlight.get(pod) ?? {}
    const consecutive = tally.runs.get(pod)?.own ?? 0
    const hung = tally.hung.get(pod)
    if (
      holds(spec, { ...counts, inFlight, lately, consecutive }) ||
      (hung !== undefined &&
        hangs(spec, { ...hung, failed: failedSince(hung.failed, hung.answeredUs) }, counts, now))
    ) {
      agree++
    }
  }
  return agree >= Math.max(quorum, Math.ceil(pods / 2))
}
