/** The error a lane refuses with: by what this pod knows, and how old that is. */
import { type Scope, SpillwayError } from '../../core/errors.js'
import type { BreakerStateName } from './api.js'
import { EXPLAIN, explainAlone } from './refusal-words.js'
import type { Replica } from './replica.js'

export interface Refuser {
  readonly name: string
  readonly lane: string
  /** Whose state decides: that of the fleet, or of this pod alone. */
  readonly scope: Scope
}

export function refusalOf(
  { name, lane, scope }: Refuser,
  replica: Replica,
  state: BreakerStateName,
  nowMs: number,
  explain = scope === 'local' ? explainAlone : EXPLAIN[state],
): SpillwayError {
  const { view, heardMs } = replica
  const endsMs = replica.endsMs(state)
  const details = {
    name,
    lane,
    state,
    calls: view.calls,
    failures: view.failures,
    inFlight: view.inFlight,
    openings: view.openings,
    probes: view.probes,
    ageMs: nowMs - heardMs,
  }
  const code = 'CIRCUIT_OPEN'
  if (endsMs === undefined) {
    return new SpillwayError({ code, stage: 'breaker', scope, details, explain })
  }
  const retryAfterMs = endsMs - nowMs
  return new SpillwayError({ code, stage: 'breaker', scope, retryAfterMs, details, explain })
}
