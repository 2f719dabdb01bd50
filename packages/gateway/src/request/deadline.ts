/** `spillway-deadline-ms`: what a client says it has left. */
import { RequestError } from '../response/errors.js'

/** In milliseconds; not a number, if it says nothing. Time that ran out on the way has run out. */
export function deadlineMs(said: string | string[] | undefined): number {
  if (said === undefined || said === '') return Number.NaN
  const ms = Number(said)
  if (!Number.isNaN(ms)) return Math.max(0, ms)
  throw invalidDeadline('must be a number of milliseconds, such as 1500')
}

export function invalidDeadline(expected: string): RequestError {
  const message = `spillway-deadline-ms: ${expected}`
  return new RequestError({ status: 400, code: 'INVALID_DEADLINE', message })
}
