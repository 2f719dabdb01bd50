/** The error by which the breaker of a lane refuses a call, with the state this pod knows and its age. */
import { type Details, readableTime, type Scope, SpillwayError } from '../../../core/errors.js'
import type { BreakerSpec } from '../../../store/breaker-spec.js'
import type { BreakerStateName } from '../api.js'
import type { Replica } from './replica.js'

export interface RefusingLane {
  readonly name: string
  readonly lane: string
  /** Whose state decides: that of the fleet, or of this pod alone. */
  readonly scope: Scope
  readonly spec: BreakerSpec
}

/** How long to wait while probes run or calls are admitted gradually. The actual duration is not known. */
export const PROBE_WAIT_MS = 1_000

const known = ({ ageMs }: Details) => `as of ${readableTime(ageMs)} ago`

const EXPLAIN: Record<BreakerStateName, (details: Details) => string> = {
  open: (details) => `${details.name}: the circuit is open (${details.cause}), ${known(details)}`,
  'half-open': (details) =>
    `${details.name}: the circuit is half-open and all its probes are running, ${known(details)}`,
  isolated: (details) => `${details.name}: isolated manually, ${known(details)}`,
  closed: (details) =>
    `${details.name}: the circuit has just closed and admits calls gradually, ${known(details)}`,
}

const explainSelfIsolated = ({ name }: Details) =>
  `${name}: only this pod sees failures, so only this pod stops calling`

/** For a half-open breaker whose store did not answer the request for a probe. */
export const explainUnknown = ({ name }: Details) =>
  `${name}: the circuit is half-open, and the store did not answer the request for a probe`

export function refusalOf(
  { name, lane, scope, spec }: RefusingLane,
  replica: Replica,
  state: BreakerStateName,
  nowMs: number,
  explain = scope === 'local' ? explainSelfIsolated : EXPLAIN[state],
): SpillwayError {
  const { view, receivedMs } = replica
  const endsMs = replica.endsMs(state)
  const details = {
    name,
    lane,
    state,
    ...(state === 'open' && { cause: replica.cause(spec) }),
    calls: view.calls,
    failures: view.failures,
    inFlight: view.inFlight,
    openings: view.openings,
    probes: view.probes,
    ageMs: nowMs - receivedMs,
  }
  const code = 'CIRCUIT_OPEN'
  const retryAfterMs = endsMs === undefined ? PROBE_WAIT_MS : endsMs - nowMs
  return new SpillwayError({ code, stage: 'breaker', scope, retryAfterMs, details, explain })
}
