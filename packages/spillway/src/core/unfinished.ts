/**
 * Work that goes on although its caller has been told it is over. A timeout rejects at once, but
 * nothing can force the work behind it to end; whoever holds something on its behalf (a slot) asks
 * here, by the error that was thrown, whether it may let go yet.
 *
 * Kept outside the error because an abort's reason is the caller's own object, and may be shared by
 * many calls: then the holder waits for all of them, which errs on the safe side.
 */
/** Whoever catches an error may wrap it in another; a chain of causes could also be a circle. */
const MOST_CAUSES = 5

const works = new WeakMap<object, Promise<unknown>>()

export function markUnfinished(error: unknown, work: Promise<unknown>): void {
  if (typeof error !== 'object' || error === null) return
  const earlier = works.get(error)
  works.set(error, earlier === undefined ? work : Promise.allSettled([earlier, work]))
}

export function unfinishedWork(error: unknown): Promise<unknown> | undefined {
  let each = error
  for (let depth = 0; depth < MOST_CAUSES && typeof each === 'object' && each !== null; depth++) {
    const work = works.get(each)
    if (work !== undefined) return work
    each = (each as { cause?: unknown }).cause
  }
  return undefined
}
