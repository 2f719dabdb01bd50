/** After a circuit has closed, not everybody who was kept out comes back at once. */

/** The calls at once double so many times before they are free. */
const DOUBLINGS = 6

/** How many calls may run at once, so long after it closed; it begins with as many as there were probes. */
export function mostAtOnce(closedForMs: number, rampMs: number, probes: number): number {
  return Math.floor(probes * 2 ** (DOUBLINGS * (closedForMs / rampMs)))
}
