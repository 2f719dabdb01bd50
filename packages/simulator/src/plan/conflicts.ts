/** Finds options of a guard that contradict each other or cannot have an effect. */
import type { GuardOptions } from 'spillway'
import { duration, validate } from 'spillway/options'
import { formatCount, formatMs } from '../report/format.js'
import type { CheckedNeeds } from './needs.js'

type Rule = (guard: GuardOptions, needs: CheckedNeeds) => string | undefined

const RULES: readonly Rule[] = [
  ({ queue }, { deadlineMs }) => {
    const ms = queue && msOf(queue.timeoutMs ?? 5_000)
    if (ms === undefined || ms < deadlineMs) return undefined
    return `queue.timeoutMs: ${formatMs(ms)} is not below the deadline, ${formatMs(deadlineMs)}: calls that wait this long are served too late; lower it`
  },
  ({ concurrency }, { sockets }) => {
    const limit = concurrency?.limit
    if (limit === undefined || sockets === undefined || limit <= sockets) return undefined
    return `concurrency.limit: ${limit} is more than the ${sockets} connections there are: the other calls wait in the HTTP client, where no timeout applies; set it to ${sockets}`
  },
  ({ pace }, { contractRps }) => {
    if (pace === undefined) return undefined
    const rps = (pace.limit * 1_000) / msOf(pace.windowMs)
    if (rps <= contractRps * 1.001) return undefined
    return `pace: ${formatCount(rps)} a second is more than the contract gives the whole fleet, ${formatCount(contractRps)}: it smooths nothing; lower it`
  },
  ({ timeout }, { deadlineMs }) => {
    const ms = timeout?.callMs && msOf(timeout.callMs)
    if (!ms || ms <= deadlineMs) return undefined
    return `timeout.callMs: ${formatMs(ms)} is past the deadline, ${formatMs(deadlineMs)}: it never ends a call; lower it`
  },
  ({ timeout }, { p99Ms }) => {
    const ms = timeout?.callMs && msOf(timeout.callMs)
    if (!ms || ms >= p99Ms) return undefined
    return `timeout.callMs: ${formatMs(ms)} is less than 99 of 100 calls take, ${formatMs(p99Ms)}: calls fail that would have been answered; raise it`
  },
  ({ retry, timeout }, { deadlineMs, latencyMs }) => {
    const attempts = retry && (retry.attempts ?? 3)
    if (attempts === undefined || attempts === 1 || timeout === undefined) return undefined
    if (attempts * latencyMs <= deadlineMs) return undefined
    return `retry.attempts: ${attempts} calls of ${formatMs(latencyMs)} do not fit before the deadline, ${formatMs(deadlineMs)}: the last attempts never start; lower it`
  },
  ({ shed, queue }) => {
    if (shed?.maxQueue === undefined || queue === undefined || shed.maxQueue <= queue.size) {
      return undefined
    }
    return `shed.maxQueue: ${shed.maxQueue} is more than queue.size, ${queue.size}: the queue is full before a call is shed; set it to ${queue.size}`
  },
  ({ breaker }, { contractRps }) => {
    if (breaker === undefined || breaker.windowCalls !== undefined) return undefined
    const calls = (contractRps * msOf(breaker.windowMs ?? 30_000)) / 1_000
    const least = breaker.minimumCalls ?? 10
    if (breaker.consecutiveFailures !== undefined || calls >= least) return undefined
    return `breaker.minimumCalls: ${least}, but the contract allows ${formatCount(calls)} in its window: it never trips; use a longer window`
  },
  ({ limits }, { limits: contract }) => {
    const own = limits?.find(
      ({ unit = 'requests', window }) => unit === 'requests' && window !== 'day',
    )
    const contractLimit = contract.find(({ unit }) => unit === 'requests')
    if (own?.windowMs === undefined || contractLimit === undefined) return undefined
    const ours = own.limit / msOf(own.windowMs)
    if (ours <= (contractLimit.limit / contractLimit.windowMs) * 1.001) return undefined
    return `limits: ${own.limit} requests in ${formatMs(msOf(own.windowMs))} are more than the contract allows; use the contract's limit`
  },
]

/** Returns options that contradict each other, each with a remedy. Empty if there are none. */
export function findConflicts(guard: GuardOptions, needs: CheckedNeeds): string[] {
  return RULES.map((rule) => rule(guard, needs)).filter((found) => found !== undefined)
}

function msOf(written: number | string): number {
  return validate('duration', written, duration({ min: 0 }))
}
