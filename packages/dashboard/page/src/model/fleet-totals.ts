/** Sums over all pods that report in time. */
import type { PodRow } from '../wire'

/** A pod without a report for this long counts as late, or is dropped. */
const LATE_MS = 2_000
const DROPPED_MS = 5_000

export interface FleetTotals {
  calls: number
  refused: number
  decided: number
  inFlight: number
  waiting: number
  alive: number
  late: number
}

export function totalsOf(pods: readonly PodRow[]): FleetTotals {
  const sum = { calls: 0, refused: 0, decided: 0, inFlight: 0, waiting: 0, alive: 0, late: 0 }
  for (const { ageMs, inFlight, waiting, guards } of pods) {
    if (ageMs > DROPPED_MS) continue
    sum.alive++
    if (ageMs > LATE_MS) sum.late++
    sum.inFlight += inFlight
    sum.waiting += waiting
    for (const [, calls, refused, , , , decided] of guards) {
      sum.calls += calls
      sum.refused += refused
      sum.decided += decided
    }
  }
  return sum
}
