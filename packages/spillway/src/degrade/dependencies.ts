/** How what a feature needs is doing. */
import type { Check } from '../core/options/checks.js'
import type { BreakerSnapshot } from '../shared/circuit-breaker/api.js'

export type DependencyStatus = 'healthy' | 'degraded' | 'unavailable'

/** A guard, whose breakers say how its downstream is; or a function that says so; or a word to begin with. */
export type Dependency =
  | { snapshot(): { breakers: readonly Pick<BreakerSnapshot, 'state' | 'selfIsolated'>[] } }
  | (() => DependencyStatus)
  | DependencyStatus

export const STATUSES = ['healthy', 'degraded', 'unavailable'] as const

/** As a function that looks. */
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

/** One lane that is closed is something; none that is, is not. */
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
