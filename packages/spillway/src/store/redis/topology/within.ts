/** Rejects if `promise` takes longer than `ms`. Does not keep the process alive. */
import type { Clock } from '../../../core/time/clock.js'

export async function within<T>(ms: number, clock: Clock, promise: Promise<T>): Promise<T> {
  let giveUp: (problem: Error) => void = () => {}
  const late = new Promise<never>((_, reject) => {
    giveUp = reject
  })
  const timer = clock.schedule(ms, () => giveUp(new Error(`no answer within ${ms} ms`)))
  timer.unref()
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.cancel()
  }
}
