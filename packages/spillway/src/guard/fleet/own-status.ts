/** The status of this pod, from the snapshots of its guards and queues. */
import { VERSION } from '../../core/version.js'
import type { ProcessReading } from '../../local/pod-metrics/process-gauge.js'
import type { JobQueueSnapshot } from '../jobs/queue-snapshot.js'
import type { GuardSnapshot } from '../snapshot.js'
import { BREAKER_CODES, type GuardStatus, type PodStatus, SELF_ISOLATED } from './pod-status.js'

/** With an injected clock, process metrics are not measured. */
const NOT_MEASURED: ProcessReading = { loopMs: 0, loopBusy: 0, memoryMb: 0, upMs: 0 }

export function ownStatus(
  guards: readonly GuardSnapshot[],
  queues: readonly Pick<JobQueueSnapshot, 'guard' | 'lane'>[],
  measured: ProcessReading | undefined,
  { draining, drainRequested, notes }: Pick<PodStatus, 'draining' | 'drainRequested' | 'notes'>,
): PodStatus {
  let most: { pressure: number; highest: string | undefined } | undefined
  for (const { shed } of guards) {
    if (shed !== undefined && shed.pressure >= (most?.pressure ?? 0)) most = shed
  }
  return {
    ...(measured ?? NOT_MEASURED),
    version: VERSION,
    draining,
    drainRequested,
    pressure: most?.pressure,
    pressureBy: most?.highest,
    store: worstStore(guards),
    guards: guards.map((guard) => guardStatus(guard, queues)),
    notes,
  }
}

function guardStatus(
  guard: GuardSnapshot,
  queues: readonly Pick<JobQueueSnapshot, 'guard' | 'lane'>[],
): GuardStatus {
  const { name, calls, active, queue } = guard
  // Lanes of calls, and lanes of jobs.
  const jobLanes = queues.filter((queue) => queue.guard === name).map(({ lane }) => lane)
  const lanes = jobLanes.length === 0 ? guard.lanes : [...new Set([...guard.lanes, ...jobLanes])]
  let refused = 0
  for (const { count } of guard.refused) refused += count
  return { name, lanes, calls, refused, active, waiting: queue.waiting, breaker: worstOf(guard) }
}

export function worstOf({ breakers }: GuardSnapshot): number {
  let worst: number = BREAKER_CODES.none
  for (const { state, selfIsolated } of breakers) {
    worst = Math.max(worst, selfIsolated ? SELF_ISOLATED : BREAKER_CODES[state])
  }
  return worst
}

/** Statuses of a store, from best to worst. */
const STORE_STATUSES = ['memory', 'shared', 'starting', 'untrusted', 'unreachable', 'off'] as const

export function worstStore(guards: readonly GuardSnapshot[]): PodStatus['store'] {
  let worst = 0
  for (const { store } of guards) {
    worst = Math.max(worst, STORE_STATUSES.indexOf(store?.status ?? 'memory'))
  }
  return STORE_STATUSES[worst] ?? 'memory'
}
