/** A pod's part of a limit while the store is unreachable. */
import type { LimitSpec } from './limit-spec.js'
import { isBucket } from './limits/counting.js'

/** The number of pods that share a limit, and the rank of this pod among them. */
export interface Fleet {
  pods: number
  rank: number
}

/** An equal share of `units`; the remainder goes to the first pods. */
export function shareOf(units: number, { pods, rank }: Fleet): number {
  return Math.floor(units / pods) + (rank < units % pods ? 1 : 0)
}

/** This pod's part of a limit. A bucket keeps a minimum refill rate. */
export function scaled(spec: LimitSpec, fleet: Fleet): LimitSpec {
  if (fleet.pods === 1) return spec
  const limit = shareOf(spec.limit, fleet)
  if (!isBucket(spec)) return { ...spec, limit }
  const burst = spec.burst === 0 ? 0 : Math.max(1, shareOf(spec.burst, fleet))
  return { ...spec, limit: Math.max(1, limit), burst }
}

/** The limit under which this pod counts. Counting in windows does not depend on the limit. */
export function counted(spec: LimitSpec, fleet: Fleet): LimitSpec {
  return isBucket(spec) ? scaled(spec, fleet) : spec
}
