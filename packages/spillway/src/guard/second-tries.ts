/** Which calls may be tried a second time, after their first attempt or beside it. */
import { currentHop } from '../core/hops.js'
import type { Verdict } from '../core/outcome.js'
import type { JudgedRunOptions } from '../local/retry/retry-call.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { RunOptions } from './run-options.js'

/** A request that came in as a retry is not tried again here: tiers would multiply. */
export function mayRetry({ options }: Machinery): boolean {
  const hop = currentHop()
  return hop === undefined || (hop.attempt === 1 && options.retry?.where !== 'edge')
}

/** By the rules of a retry. A probe has to say for itself how the downstream is. */
export function mayHedge(
  machinery: Machinery,
  { idempotent, idempotencyKey }: RunOptions,
  { breaker }: CallAdmission,
): boolean {
  if (breaker?.probe === true) return false
  return (idempotent !== false || Boolean(idempotencyKey)) && mayRetry(machinery)
}

/** How a call is tried again that was judged already. */
export function retryOptions(
  { breaker }: Machinery,
  { signal, idempotent, idempotencyKey }: RunOptions,
  lane: string,
  judged: () => Verdict | undefined,
): JudgedRunOptions {
  return {
    ...(signal !== undefined && { signal }),
    ...(idempotent !== undefined && { idempotent }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    judged,
    mayRetry: () => breaker === undefined || breaker.state(lane) === 'closed',
  }
}
