/** The status of what a feature depends on. */
import type { Check } from '../core/options/checks.js'
import type { BreakerSnapshot } from '../shared/circuit-breaker/api.js'

/** State of a downstream that features depend on. */
export type DependencyStatus = 'healthy' | 'degraded' | 'unavailable'

/**
 * A guard, whose breakers show the state of its downstream; a function that returns the status; or
 * a first status.
 */
export type Dependency =
  | { snapshot(): { breakers: readonly Pick<BreakerSnapshot, 'state' | 'selfIsolated'>[] } }
  | (() => DependencyStatus)
  | DependencyStatus

export const STATUSES = ['healthy', 'degraded', 'unavailable'] as const

/** As a function that returns the status. */
export const readDependency: Check<() => DependencyStatus> = (value, path, problems) => {
  const dependency = value as Dependency
  if (typeof dependency === 'function') return dependency
  if ((STATUSES as readonly unknown[]).includes(value)) return () => value as DependencyStatus
  if (typeof dependency === 'object' && typeof dependency?.snapshot === 'function') {
    return () => statusOf(dependency.snapshot().breakers)
  }
  const words = STATUSES.map((each) => `'${each}'`).join(', ')
  problems.push({ path, message: `must be a guard, a function, or one of ${words}` })
  return () => 'healthy'
}

/** Degraded while at least one lane is closed; unavailable if none is. */
function statusOf(
  breakers: readonly Pick<BreakerSnapshot, 'state' | 'selfIsolated'>[],
): DependencyStatus {
  const closed = breakers.filter(({ state, selfIsolated }) => state === 'closed' && !selfIsolated)
  if (closed.length === breakers.length) return 'healthy'
  const down = breakers.every(
    ({ state, selfIsolated }) => state !== 'half-open' && (state !== 'closed' || selfIsolated),
  )
  return down ? 'unavailable' : 'degraded'
}
