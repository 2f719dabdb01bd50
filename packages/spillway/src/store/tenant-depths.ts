/** Whose jobs wait: how those are ordered that have the most. */
import type { TenantDepths } from './queue-port.js'

type Depth = TenantDepths['top'][number]

/** Equals by name. */
export function deepestFirst(one: Depth, other: Depth): number {
  return sumOf(other) - sumOf(one) || (one.tenant < other.tenant ? -1 : 1)
}

function sumOf({ byPriority }: Depth): number {
  return byPriority.reduce((sum, each) => sum + each, 0)
}
