/** What a circuit says when it refuses, by the state it is in. */
import { type Details, inMs } from '../../core/errors.js'
import type { BreakerStateName } from './api.js'

export const explainAlone = ({ name }: Details) =>
  `${name}: this pod alone sees failures, so it alone stops calling`

export const explainUnknown = ({ name }: Details) =>
  `${name}: the circuit is half-open, and the store did not answer who may probe it`

const told = ({ ageMs }: Details) => `as told ${inMs(ageMs)} ago`

export const EXPLAIN: Record<BreakerStateName, (details: Details) => string> = {
  open: (details) => `${details.name}: the circuit is open, ${told(details)}`,
  'half-open': (details) =>
    `${details.name}: the circuit is half-open and all its probes are under way, ${told(details)}`,
  isolated: (details) => `${details.name}: isolated by hand, ${told(details)}`,
  closed: (details) =>
    `${details.name}: the circuit has just closed and lets calls back in by and by, ${told(details)}`,
}
