/** Computes guard options from a contract, each number with its reason. */
import type { GuardOptions } from 'spillway'
import { formatCount, formatMs } from '../report/format.js'
import { findConflicts } from './conflicts.js'
import { type CheckedNeeds, checkNeeds, type PlanNeeds } from './needs.js'

/** One option of the planned guard, with its reason. */
export interface PlannedNumber {
  /** Path of the option, such as `queue.timeoutMs`. */
  path: string
  /** Its value, as text. */
  value: string
  /** Why it has this value. */
  because: string
}

/** A guard for a contract, with the reason of each number. */
export interface Plan {
  /** Options of the guard. */
  guard: GuardOptions
  /** Its numbers, with reasons. */
  numbers: PlannedNumber[]
  /** Options that contradict each other, and what to do. */
  warnings: string[]
}

/** CPU time per call. Waiting for a vendor costs little; preparing requests and reading responses does. */
const CALLS_PER_CORE = 50
const MOST_CALLS = 200
/** Fraction of memory for calls; the rest is for the process itself. */
const MEMORY_SHARE = 0.5
const PACE_MARGIN = 0.8
const LONGEST_QUEUE_MS = 5_000

/**
 * Computes guard options from a vendor's contract, a fleet and measured durations.
 *
 * @example
 * const { guard, warnings } = planFor({ limits: [{ limit: 500, windowMs: '1m' }], pods: 4, latencyMs: '2s' })
 */
export function planFor(written: PlanNeeds): Plan {
  const needs = checkNeeds(written)
  const numbers: PlannedNumber[] = []
  const note = (path: string, value: string | number, because: string) => {
    numbers.push({ path, value: typeof value === 'number' ? formatCount(value) : value, because })
  }
  for (const { limit, windowMs, unit } of needs.limits) {
    note(
      'limits',
      `${formatCount(limit)} ${unit} in ${formatMs(windowMs)}`,
      'the contract, exactly: never divided by pods, one budget for all of them',
    )
  }
  const concurrency = { limit: callsAtOnce(needs, note) }
  const pace = paceOf(needs, concurrency.limit, note)
  const queue = queueOf(needs, pace, note)
  const timeout = { callMs: Math.min(needs.deadlineMs, Math.ceil(needs.p99Ms * 1.5)) }
  note(
    'timeout.callMs',
    formatMs(timeout.callMs),
    `half as long again as 99 of 100 calls take (${formatMs(needs.p99Ms)}), and not past the deadline`,
  )
  const breaker = breakerOf(needs, note)
  const retry = retryOf(needs, timeout.callMs, note)
  const limits = needs.limits.map(({ limit, windowMs, unit }) => ({ unit, limit, windowMs }))
  const shed = { maxQueue: queue.size }
  note(
    'shed.maxQueue',
    shed.maxQueue,
    'with a full queue all but critical calls are refused before any work is done',
  )
  const guard = { shed, queue, breaker, limits, pace, concurrency, timeout, retry }
  return {
    guard,
    numbers,
    warnings: [...findConflicts(guard, needs), ...surprises(needs, concurrency.limit)],
  }
}

type Note = (path: string, value: string | number, because: string) => void

function callsAtOnce({ cores, memoryBytes, callBytes, sockets }: CheckedNeeds, note: Note): number {
  const bounds = [
    {
      calls: Math.max(1, Math.floor(CALLS_PER_CORE * cores)),
      what: `${CALLS_PER_CORE} for each of ${cores} cores`,
    },
    {
      calls: Math.max(1, Math.floor((memoryBytes * MEMORY_SHARE) / callBytes)),
      what: 'half of the memory',
    },
    { calls: MOST_CALLS, what: 'what one event loop serves well' },
    { calls: sockets ?? Number.POSITIVE_INFINITY, what: 'the connections there are' },
  ].toSorted((one, other) => one.calls - other.calls)
  const [least, next] = bounds as [(typeof bounds)[0], (typeof bounds)[0]]
  note(
    'concurrency.limit',
    least.calls,
    `calls at once in a pod: ${least.what}; next would be ${next.what}, ${formatCount(next.calls)}`,
  )
  return least.calls
}

function paceOf({ latencyMs, contractRps }: CheckedNeeds, calls: number, note: Note) {
  const ownRps = (calls / (latencyMs / 1_000)) * PACE_MARGIN
  const rps = Math.min(ownRps, contractRps)
  // A slow pace is given per minute, so that it is a whole number.
  const windowMs = rps >= 10 ? 1_000 : 60_000
  const limit = Math.max(1, Math.floor((rps * windowMs) / 1_000))
  const formula = `${calls} at once / ${formatMs(latencyMs)} × ${PACE_MARGIN} = ${formatCount(ownRps)} a second`
  const why =
    ownRps > contractRps ? `${formula}, cut to what the contract gives the whole fleet` : formula
  note('pace', `${formatCount(limit)} in ${formatMs(windowMs)}`, why)
  return { limit, windowMs, burst: Math.max(1, Math.min(limit, calls)) }
}

function queueOf(
  { deadlineMs, p99Ms }: CheckedNeeds,
  pace: { limit: number; windowMs: number },
  note: Note,
) {
  // A slow call may need the whole deadline. Then calls that have waited for a quarter of it can still succeed.
  const spareMs = Math.max(deadlineMs - p99Ms * 1.2, deadlineMs / 4)
  const timeoutMs = Math.ceil(Math.min(LONGEST_QUEUE_MS, spareMs))
  note(
    'queue.timeoutMs',
    formatMs(timeoutMs),
    `what the deadline (${formatMs(deadlineMs)}) leaves beside a slow call, at most ${formatMs(LONGEST_QUEUE_MS)}`,
  )
  const size = Math.max(1, Math.ceil((pace.limit / pace.windowMs) * timeoutMs))
  note(
    'queue.size',
    size,
    'as many as can leave the queue at this pace before queue.timeoutMs; more would time out',
  )
  return { size, timeoutMs }
}

function breakerOf({ pods, p99Ms, contractRps }: CheckedNeeds, note: Note) {
  const windowMs = Math.round(Math.min(60_000, Math.max(10_000, 100_000 / contractRps)))
  const inWindow = (contractRps * windowMs) / 1_000
  const minimumCalls = Math.max(3, Math.min(20, Math.floor(inWindow / 4)))
  const openMs = Math.round(Math.min(30_000, Math.max(5_000, p99Ms * 2)))
  const quorum = pods >= 3 ? 2 : 1
  note(
    'breaker.windowMs',
    formatMs(windowMs),
    `about ${formatCount(inWindow)} calls of the fleet: enough for a rate to mean something`,
  )
  note('breaker.minimumCalls', minimumCalls, 'below a quarter of that the rate is not meaningful')
  note(
    'breaker.openMs',
    formatMs(openMs),
    'the duration of two slow calls: time to recover, short enough to notice the recovery',
  )
  note(
    'breaker.quorum',
    quorum,
    quorum === 1
      ? 'too few pods to distinguish a failing pod from a failing vendor'
      : 'one sick pod does not stop the others',
  )
  return { failureRate: 0.5, windowMs, minimumCalls, openMs, probes: 3, successes: 2, quorum }
}

function retryOf({ deadlineMs, latencyMs }: CheckedNeeds, callMs: number, note: Note) {
  const attempts = Math.max(
    1,
    Math.min(3, Math.floor(deadlineMs / Math.max(latencyMs, callMs / 2))),
  )
  const baseMs = Math.round(Math.min(1_000, Math.max(50, latencyMs / 4)))
  note('retry.attempts', attempts, 'as many as fit before the deadline, including the first')
  note(
    'retry.budget',
    '0.2',
    'retries are at most a fifth of the calls, or they make an outage worse',
  )
  return { attempts, budget: 0.2, baseMs }
}

/** Warnings about consequences of the numbers. */
function surprises(
  { pods, latencyMs, contractRps, limits }: CheckedNeeds,
  calls: number,
): string[] {
  const found: string[] = []
  const needed = (contractRps * latencyMs) / 1_000
  if (needed > calls * pods) {
    found.push(
      `the fleet cannot use its contract: ${formatCount(needed)} calls at once would be needed, ${pods} pods run ${formatCount(calls * pods)}; use more or larger pods`,
    )
  }
  for (const { limit, unit } of limits) {
    if (limit < pods)
      found.push(
        `limits: ${limit} ${unit} for ${pods} pods: while the store is unreachable a pod's share is less than one, so some pods send nothing`,
      )
  }
  return found
}
