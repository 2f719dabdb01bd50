/** Why a circuit opened, in words. The store keeps the counts that opened it until it closes again. */
import { counted } from '../../../core/errors.js'
import type { BreakerSpec } from '../../../store/breaker-spec.js'
import type { BreakerView } from '../../../store/port.js'

type Counts = Pick<BreakerView, 'calls' | 'failures' | 'slow' | 'consecutive' | 'openings'>
type Conditions = Pick<BreakerSpec, 'consecutive' | 'failureRate' | 'slowRate' | 'minimumCalls'>

export function tripCause(counts: Counts, conditions: Conditions): string {
  const first = firstCause(counts, conditions)
  const { openings } = counts
  if (openings === 0) return first
  return `${first}, then failed probes ${openings === 1 ? 'once' : `${openings} times`}`
}

/** The conditions in the order in which they are checked, see `store/breaker/trip-conditions.ts`. */
function firstCause(
  { calls, failures, slow, consecutive }: Counts,
  { consecutive: mostInARow, failureRate, slowRate, minimumCalls }: Conditions,
): string {
  if (mostInARow > 0 && consecutive >= mostInARow) {
    return `${counted(consecutive, 'failures')} in a row`
  }
  const decides = calls > 0 && calls >= minimumCalls
  if (decides && failureRate > 0 && failures / calls >= failureRate) {
    return `failure rate ${percent(failures / calls)} of ${counted(calls, 'calls')}`
  }
  if (decides && slowRate > 0 && slow / calls >= slowRate) {
    return `slow-call rate ${percent(slow / calls)} of ${counted(calls, 'calls')}`
  }
  // Calls that hang open a circuit below its failure rate, and so does half of the pods with a quorum.
  if (failures + slow > 0)
    return `${failures} failed and ${slow} slow of ${counted(calls, 'calls')}`
  return 'opened manually'
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
