/**
 * Reports to the store how jobs ended. Results are sent with the next request for jobs, or in a separate round trip
 * if there is none. Each turn of a job has a number, so a result whose reply was lost can be sent again until the
 * lease of the job has ended.
 */
import type { Clock } from '../../core/time/clock.js'
import { sleep } from '../../core/time/sleep.js'
import type { Finished, JobEnd } from '../../store/queue-port.js'

export interface FinisherOptions {
  clock: Clock
  leaseMs: number
  send(ends: readonly JobEnd[]): Promise<Finished[]>
  /** `undefined`: the result is unknown. */
  onFinished(end: JobEnd, finished: Finished | undefined): void
}

/** Results that were added to another request; its sender reports whether they arrived. */
export interface PiggybackedEnds {
  ends: readonly JobEnd[]
  arrived(answers: readonly Finished[]): void
  lost(): void
}

interface Waiting {
  end: JobEnd
  untilMs: number
}

const MOST_PER_ROUND_TRIP = 256
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export class Finisher {
  readonly #options: FinisherOptions
  #waiting: Waiting[] = []
  /** A separate round trip is in flight. */
  #sending = false
  #piggybacked = 0
  #onIdle: (() => void)[] = []

  constructor(options: FinisherOptions) {
    this.#options = options
  }

  add(end: JobEnd): void {
    const { clock, leaseMs } = this.#options
    this.#waiting.push({ end, untilMs: clock.now() + leaseMs })
  }

  /** The waiting results, for a request that is sent now. */
  piggyback(): PiggybackedEnds | undefined {
    if (this.#waiting.length === 0) return undefined
    const batch = this.#waiting.splice(0, MOST_PER_ROUND_TRIP)
    this.#piggybacked++
    return {
      ends: batch.map(({ end }) => end),
      arrived: (answers) => {
        this.#piggybacked--
        this.#reportFinished(batch, answers)
        this.#notifyIfIdle()
      },
      lost: () => {
        this.#piggybacked--
        this.#putBack(batch)
        void this.send()
      },
    }
  }

  /** Sends the waiting results in a separate round trip. */
  async send(): Promise<void> {
    if (this.#sending) return
    this.#sending = true
    let pauseMs = FIRST_PAUSE_MS
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MOST_PER_ROUND_TRIP)
      try {
        this.#reportFinished(batch, await this.#options.send(batch.map(({ end }) => end)))
        pauseMs = FIRST_PAUSE_MS
      } catch {
        this.#putBack(batch)
        await sleep(this.#options.clock, pauseMs)
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
      }
    }
    this.#sending = false
    this.#notifyIfIdle()
  }

  /** Resolves when all results were sent or given up. */
  async drain(): Promise<void> {
    void this.send()
    if (this.#isIdle) return
    await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  get #isIdle(): boolean {
    return !this.#sending && this.#piggybacked === 0 && this.#waiting.length === 0
  }

  #notifyIfIdle(): void {
    if (this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #reportFinished(batch: readonly Waiting[], answers: readonly Finished[]): void {
    for (const [index, { end }] of batch.entries()) this.#options.onFinished(end, answers[index])
  }

  #putBack(batch: readonly Waiting[]): void {
    const nowMs = this.#options.clock.now()
    this.#waiting.unshift(...batch.filter(({ untilMs }) => untilMs > nowMs))
    for (const { end, untilMs } of batch) {
      if (untilMs <= nowMs) this.#options.onFinished(end, undefined)
    }
  }
}
