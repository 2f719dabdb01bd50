/** Whether the guards of this pod share their state through the store, and the problems if not. */
import type { StoreStatus } from '../../shared/outage/store-status.js'
import type { GuardSnapshot, SpillwayHealth } from '../snapshot.js'

export function healthOf(guards: readonly GuardSnapshot[]): SpillwayHealth {
  const problems: string[] = []
  // A guard may be named `__proto__`: assigned to a plain object it would get lost.
  const byGuard: [string, StoreStatus | 'memory'][] = []
  for (const { name, store } of guards) {
    byGuard.push([name, store?.status ?? 'memory'])
    if (store === undefined || store.status === 'shared' || store.status === 'starting') continue
    const why = store.why === undefined ? '' : `: ${store.why}`
    problems.push(`${name}: ${STORE_PROBLEMS[store.status]}${why}`)
    if (store.warning !== undefined) problems.push(`${name}: ${store.warning}`)
  }
  return {
    status: problems.length === 0 ? 'ok' : 'degraded',
    guards: Object.fromEntries(byGuard),
    problems,
  }
}

const STORE_PROBLEMS = {
  unreachable: 'the store does not answer',
  untrusted: 'the store is back; limits are shared again after one window',
  off: 'not shared, because of SPILLWAY_SHARED=off',
}
