/** Reads the body of a vendor's error for its cause: a rate limit, an exhausted quota, an invalid key. */
import type { Clock } from 'spillway'
import { type ErrorTable, noteFailure, readFailure, type Timer } from 'spillway/internal'
import type { SentAnswer } from './sent-answer.js'

/** The body is read up to this size, and awaited for this long. Otherwise its status decides. */
export const MOST_ERROR_BYTES = 16_384
const ERROR_BODY_MS = 1_000

export class ErrorBody {
  readonly #errors: ErrorTable
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #timer: Timer

  /** `onLate`: called if the body does not arrive in time. */
  constructor(errors: ErrorTable, clock: Pick<Clock, 'schedule' | 'wallMs'>, onLate: () => void) {
    this.#errors = errors
    this.#clock = clock
    this.#timer = clock.schedule(ERROR_BODY_MS, onLate)
  }

  /** Stops waiting for the body. */
  close(): void {
    this.#timer.cancel()
  }

  /**
   * Notes for the guard and the gateway why the answer is an error. `beginning`: the bytes of its body that have
   * arrived.
   */
  read(answer: SentAnswer, beginning: Buffer): void {
    const { status, headers } = answer
    const reported = { status, headers, body: beginning.toString() }
    noteFailure(answer, readFailure(this.#errors, reported, this.#clock.wallMs()))
  }
}
