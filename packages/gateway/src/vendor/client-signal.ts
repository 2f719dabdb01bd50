/**
 * Aborts the calls of one request when its client leaves. It also knows which failures the client causes itself: they
 * say nothing about the vendor, so breakers and limits ignore them.
 */

import { type CallEnd, type Outcome, SpillwayError } from 'spillway'
import { LeaveSignal } from 'spillway/internal'

/** `upload`: its body is still arriving. `deadline`: it set a shorter deadline than the route. */
type ClientCause = 'upload' | 'deadline'

export class ClientSignal extends LeaveSignal {
  cause: ClientCause | undefined
}

/** For guards: the outcome of a call whose failure the client caused. */
export function classifyClientFailure(end: CallEnd): Outcome | undefined {
  if (!('error' in end) || !(end.signal instanceof ClientSignal)) return undefined
  const { cause } = end.signal
  const isLate = end.error instanceof SpillwayError && end.error.code === 'DEADLINE_EXCEEDED'
  return cause === 'upload' || (cause === 'deadline' && isLate) ? 'ignored' : undefined
}
