/** Whether a call may begin now, as far as this pod can tell. */
import type { CallerSignal } from '../core/abort.js'
import { closedError } from '../core/errors.js'
import { type Deadline, deadlineError } from '../core/time/deadline.js'
import { limitedRefusal, type NewCall } from './known-refusals.js'
import type { CallAdmission, Machinery } from './machinery.js'

/** Why not, told apart from what was asked for. */
export class Refusal {
  constructor(readonly error: unknown) {}
}

/** Everything at once; nothing, if it has to wait for something. */
export function tryNow(
  machinery: Machinery,
  call: NewCall & { readonly signal: CallerSignal | undefined },
  deadline: Deadline | undefined,
  nowMs: number,
): CallAdmission | Refusal | undefined {
  const late = tooLate(machinery, call.signal, deadline)
  if (late !== undefined) return late
  let admission: CallAdmission | undefined
  try {
    admission = machinery.dispatcher.tryNow(call.lane, call, nowMs)
  } catch (error) {
    return new Refusal(error)
  }
  if (admission !== undefined) return admission
  const limited = limitedRefusal(machinery, call, nowMs)
  return limited === undefined ? undefined : new Refusal(limited)
}

/** The same where the way was free when the call came, and it has come this moment. */
export function takeNow(
  machinery: Machinery,
  call: Parameters<typeof tryNow>[1],
  deadline: Deadline | undefined,
  nowMs: number,
): CallAdmission | Refusal | undefined {
  const { dispatcher } = machinery
  return dispatcher.takeNow(call.lane, call, nowMs) ?? tryNow(machinery, call, deadline, nowMs)
}

/** Nobody wants it any more, or nobody may begin any more. */
export function tooLate(
  { name, closed }: Machinery,
  signal: CallerSignal | undefined,
  deadline: Deadline | undefined,
): Refusal | undefined {
  if (signal?.aborted === true) return new Refusal(signal.reason)
  if (closed) return new Refusal(closedError('room', name))
  return deadline?.expired === true ? new Refusal(deadlineError('room', name)) : undefined
}
