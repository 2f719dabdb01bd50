/**
 * What a client does to itself says nothing about the vendor: a body it does not send, a deadline of its
 * own that nobody could keep. Guards know a call by its signal, so that is what carries the blame.
 */

import { type CallEnd, type Outcome, SpillwayError } from 'spillway'
import type { CallerSignal } from 'spillway/internal'

/** `uploading`: its body is still coming. `impatient`: it set itself a deadline. */
type Blame = 'uploading' | 'impatient'

const blames = new WeakMap<CallerSignal, Blame>()

export function blame(signal: CallerSignal, why: Blame): void {
  blames.set(signal, why)
}

export function absolve(signal: CallerSignal): void {
  blames.delete(signal)
}

/** For guards: how a call ended, if that is its client's doing. */
export function classifyByBlame(end: CallEnd): Outcome | undefined {
  if (!('error' in end) || end.signal === undefined) return undefined
  const why = blames.get(end.signal)
  if (why === undefined) return undefined
  const late = end.error instanceof SpillwayError && end.error.code === 'DEADLINE_EXCEEDED'
  return why === 'uploading' || late ? 'ignored' : undefined
}
