/**
 * Work that goes on although its caller has been told it is over. A timeout rejects at once, but
 * nothing can force the work behind it to end; whoever holds something on its behalf (a slot) has
 * to know.
 *
 * Two ways, because neither sees everything. Calls that begin while the holder's function runs
 * synchronously are collected, so it does not matter what becomes of their errors. Calls that begin
 * later are found by the error they ended with, as far as that is passed on, wrapped or not.
 */
import { swallow } from './thenable.js'

/** A call that may leave its work behind. */
export interface Outlivable {
  /** The work, once the call has been given up while it was still running. */
  readonly leftBehind: Promise<unknown> | undefined
}

let collected: Outlivable[] | undefined
let collecting = false

export function noteCall(call: Outlivable): void {
  if (!collecting) return
  if (collected === undefined) collected = [call]
  else collected.push(call)
}

/** Runs a function and hands over the calls it began, if any. An outer collector gets them too. */
export function collectCalls<T>(fn: () => T, receive: (calls: Outlivable[]) => void): T {
  const outer = collecting ? { calls: collected } : undefined
  collecting = true
  collected = undefined
  try {
    return fn()
  } finally {
    const calls = collected as Outlivable[] | undefined
    collecting = outer !== undefined
    collected = outer?.calls
    if (calls !== undefined) {
      for (const call of calls) noteCall(call)
      receive(calls)
    }
  }
}

/** Whoever catches an error may wrap it in another; a chain of causes could also be a circle. */
const MOST_CAUSES = 5

/** An abort's reason is the caller's own object and may be shared by many calls. */
const works = new WeakMap<object, Set<Promise<unknown>>>()

export function markUnfinished(error: unknown, work: Promise<unknown>): void {
  if (typeof error !== 'object' || error === null) return
  const set = works.get(error) ?? new Set()
  works.set(error, set.add(work))
  const done = () => set.delete(work)
  swallow(work.then(done, done))
}

export function unfinishedWork(error: unknown): Promise<unknown> | undefined {
  try {
    let each = error
    for (let depth = 0; depth < MOST_CAUSES && typeof each === 'object' && each !== null; depth++) {
      const set = works.get(each)
      if (set !== undefined && set.size > 0) return allEnded([...set])
      each = (each as { cause?: unknown }).cause
    }
  } catch {
    // A getter on somebody's error threw.
  }
  return undefined
}

/** Settles when all work has ended, and all that it left behind in turn. */
export async function allEnded(all: readonly Promise<unknown>[]): Promise<void> {
  for (const { status, ...result } of await Promise.allSettled(all)) {
    if (status === 'rejected') await unfinishedWork((result as { reason: unknown }).reason)
  }
}
