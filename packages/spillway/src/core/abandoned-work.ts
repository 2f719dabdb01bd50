/**
 * Work that is still running after its call has ended. A timeout rejects the caller at once, but it
 * cannot stop the work. A mechanism that holds a slot for this work has to know when it really
 * ends.
 *
 * There are two ways to find such work, because neither finds all of it:
 * - Calls that begin while the holder's function runs synchronously are collected.
 * - Later calls are found by the error they ended with, if that error is passed on, wrapped or not.
 */
import { swallow } from './thenable.js'

/** A call that may leave its work behind. */
export interface AbandonableCall {
  /** The work, once the call was given up while it was still running. */
  readonly leftBehind: Promise<unknown> | undefined
}

let collected: AbandonableCall[] | undefined
/** Whether calls that begin now have to be noted. */
export let collecting = false

export function noteCall(call: AbandonableCall): void {
  if (!collecting) return
  if (collected === undefined) collected = [call]
  else collected.push(call)
}

/** Runs `fn` and passes the calls it began to `receive`. An outer collector gets them, too. */
export function collectCalls<T>(fn: () => T, receive: (calls: AbandonableCall[]) => void): T {
  const outer = collecting ? { calls: collected } : undefined
  collecting = true
  collected = undefined
  try {
    return fn()
  } finally {
    const calls = collected as AbandonableCall[] | undefined
    collecting = outer !== undefined
    collected = outer?.calls
    if (calls !== undefined) {
      for (const call of calls) noteCall(call)
      receive(calls)
    }
  }
}

/** Errors are wrapped in others, and a chain of causes can be circular. */
const MOST_CAUSES = 5

/** An abort reason belongs to the caller, and several calls can share one. */
const works = new WeakMap<object, Set<Promise<unknown>>>()

export function markAbandonedWork(error: unknown, work: Promise<unknown>): void {
  if (typeof error !== 'object' || error === null) return
  const set = works.get(error) ?? new Set()
  works.set(error, set.add(work))
  const done = () => set.delete(work)
  swallow(work.then(done, done))
}

export function abandonedWork(error: unknown): Promise<unknown> | undefined {
  try {
    let each = error
    for (let depth = 0; depth < MOST_CAUSES && typeof each === 'object' && each !== null; depth++) {
      const set = works.get(each)
      if (set !== undefined && set.size > 0) return allEnded([...set])
      each = (each as { cause?: unknown }).cause
    }
  } catch {
    // A getter of the error threw.
  }
  return undefined
}

/** Resolves when all of the work has ended, and all work that it left running in turn. */
export async function allEnded(all: readonly Promise<unknown>[]): Promise<void> {
  for (const { status, ...result } of await Promise.allSettled(all)) {
    if (status === 'rejected') await abandonedWork((result as { reason: unknown }).reason)
  }
}
