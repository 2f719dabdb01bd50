/** An answer that somebody waits for who may leave: then it comes too late, and has to be undone. */
import { type CallerSignal, onAbort } from '../core/abort.js'
import type { Clock } from '../core/clock.js'
import type { Deadline } from '../core/deadline.js'

export interface Leaver<T> {
  clock: Clock
  signal: CallerSignal | undefined
  deadline: Deadline | undefined
  /** What to leave with when the deadline passes. */
  tooLate(): unknown
  onGone(error: unknown): void
  /** The answer came after all. */
  onLate(answer: T): void
}

export function unlessGone<T>(answer: Promise<T>, leaver: Leaver<T>): Promise<T> {
  const { clock, signal, deadline } = leaver
  if (signal === undefined && deadline === undefined) return answer
  return new Promise((resolve, reject) => {
    let over = false
    const leave = (error: unknown) => {
      end()
      leaver.onGone(error)
      reject(error)
    }
    const timer = deadline && clock.schedule(deadline.remainingMs(), () => leave(leaver.tooLate()))
    const forget = signal && onAbort(signal, () => leave(signal.reason))
    const end = () => {
      over = true
      timer?.cancel()
      forget?.()
    }
    answer.then(
      (each) => {
        if (over) return leaver.onLate(each)
        end()
        resolve(each)
      },
      (error) => {
        if (over) return
        end()
        reject(error)
      },
    )
  })
}
