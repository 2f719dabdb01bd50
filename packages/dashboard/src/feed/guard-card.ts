/** The part of a guard's options that the page draws. Functions, headers and keys are left out. */

import type { CheckedGuard } from 'spillway/internal'
import { isOn, omitUndefined, rowsOf, STAGES, toSpec, withCustomStages } from 'spillway/internal'
import { shown } from '../shown.js'
import type { GuardCard } from '../wire/hello.js'

type Limits = NonNullable<GuardCard['limits']>

export function guardCard(name: string, options: CheckedGuard): GuardCard {
  const { shed, userLimits, queue, breaker, limits, pace, concurrency, timeout, retry } = options
  const rows = withCustomStages(STAGES, options.stages ?? [])
  const on = rows.filter(({ option }) => option === 'run' || isOn(options, option))
  return omitUndefined({
    name: shown(name),
    on: on.map(({ stage }) => stage),
    stages: options.stages && rowsOf(rows),
    shed:
      shed &&
      omitUndefined({
        maxQueue: shed.maxQueue,
        maxInFlight: shed.maxInFlight,
        tiers: tiersOf(shed.tiers),
      }),
    userLimits: userLimits?.map(levelCard),
    queue: queue && { size: queue.size, timeoutMs: queue.timeoutMs },
    breaker: breaker && breakerCard(breaker),
    limits: limits && limitCards(limits),
    pace: pace && { limit: pace.limit, windowMs: pace.windowMs },
    concurrency: concurrency && {
      limit: concurrency.limit ?? concurrency.max,
      adaptive: concurrency.adaptive !== undefined,
    },
    timeout:
      timeout &&
      omitUndefined({
        callMs: timeout.callMs,
        firstByteMs: timeout.firstByteMs,
        idleMs: timeout.idleMs,
      }),
    retry: retry && { attempts: retry.attempts, budget: retry.budget },
    fallbacks: (options.fallback ?? []).map((step) => shown(step.name)),
  }) as GuardCard
}

function tiersOf(
  tiers: ReadonlyMap<string, number> | undefined,
): Record<string, number> | undefined {
  if (tiers === undefined) return undefined
  return Object.fromEntries([...tiers].map(([tier, limit]) => [shown(tier), limit]))
}

function levelCard(level: NonNullable<CheckedGuard['userLimits']>[number]) {
  const { per, limit, windowMs, algorithm } = level
  const sliding = algorithm === 'sliding-window' && { sliding: true as const }
  if (typeof limit === 'number') return { per, limit, windowMs, ...sliding }
  if (typeof limit !== 'object') return { per, windowMs, ...sliding }
  const limited = Object.entries(limit).filter(([, each]) => typeof each === 'number')
  const by = Object.fromEntries(limited.map(([name, each]) => [shown(name), each as number]))
  return { per, by, windowMs, ...sliding }
}

function breakerCard(breaker: NonNullable<CheckedGuard['breaker']>): GuardCard['breaker'] {
  const { openMs, probes, successes, per, shadow } = breaker
  // With defaults filled in.
  const spec = toSpec(breaker)
  return {
    ...(spec.failureRate > 0 && { failureRate: spec.failureRate }),
    ...(spec.slowRate > 0 && { slowRate: spec.slowRate }),
    ...(spec.consecutive > 0 && { consecutiveFailures: spec.consecutive }),
    minimumCalls: spec.minimumCalls,
    ...(spec.windowUs > 0 && { windowMs: spec.windowUs / 1_000 }),
    ...(spec.quorum > 1 && { quorum: spec.quorum }),
    openMs,
    probes,
    successes,
    per,
    shadow,
  }
}

/** Several limits of one unit are numbered, as in the store. */
function limitCards(limits: NonNullable<CheckedGuard['limits']>): Limits {
  const seen = new Map<string, number>()
  return limits.map(({ unit, limit, windowMs, timeZone = 'UTC', per }) => {
    const number = (seen.get(unit) ?? 0) + 1
    seen.set(unit, number)
    const id = number === 1 ? unit : `${unit}#${number}`
    const window = windowMs === undefined ? { timeZone } : { windowMs }
    return { id: shown(id), unit: shown(unit), limit, ...window, per }
  })
}
