/** The order of tenants by waiting jobs, most first. */
import type { TenantDepths } from './queue-port.js'

type Depth = TenantDepths['top'][number]

/** Tenants with equal numbers are ordered by name. */
export function deepestFirst(one: Depth, other: Depth): number {
  return sumOf(other) - sumOf(one) || (one.tenant < other.tenant ? -1 : 1)
}

function sumOf({ byPriority }: Depth): number {
  return byPriority.reduce((sum, each) => sum + each, 0)
}
