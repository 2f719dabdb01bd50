/**
 * Tells the store how jobs ended: all that has gathered in one trip, one trip at a time. A job has a
 * number for each turn, so one whose answer was lost is simply told again, until its lease is over and
 * it does not matter any more.
 */
import type { Clock } from '../../core/clock.js'
import { gathering } from '../../core/gathering.js'
import { sleep } from '../../core/sleep.js'
import type { Finished, JobEnd } from '../../store/queue-port.js'

export interface FinisherOptions {
  clock: Clock
  leaseMs: number
  send(ends: readonly JobEnd[]): Promise<Finished[]>
  /** `undefined`: nobody knows. */
  told(end: JobEnd, finished: Finished | undefined): void
  /** A trip leaves: whoever wants more jobs can go along. */
  leaving(): void
}

interface Waiting {
  end: JobEnd
  untilMs: number
}

const MOST_IN_A_TRIP = 256
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export class Finisher {
  readonly #options: FinisherOptions
  #waiting: Waiting[] = []
  #busy = false
  #onIdle: (() => void)[] = []
  readonly #soon = gathering(() => void this.#go())

  constructor(options: FinisherOptions) {
    this.#options = options
  }

  add(end: JobEnd): void {
    const { clock, leaseMs } = this.#options
    this.#waiting.push({ end, untilMs: clock.now() + leaseMs })
    if (!this.#busy) this.#soon()
  }

  /** Resolves when everything is told, or given up. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#busy && this.#waiting.length === 0) resolve()
      else this.#onIdle.push(resolve)
    })
  }

  async #go(): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    let pauseMs = FIRST_PAUSE_MS
    while (this.#waiting.length > 0) {
      const trip = this.#waiting.splice(0, MOST_IN_A_TRIP)
      try {
        const sent = this.#options.send(trip.map(({ end }) => end))
        this.#options.leaving()
        const answers = await sent
        for (const [index, { end }] of trip.entries()) this.#options.told(end, answers[index])
        pauseMs = FIRST_PAUSE_MS
      } catch {
        await sleep(this.#options.clock, pauseMs)
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
        this.#again(trip)
      }
    }
    this.#busy = false
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #again(trip: readonly Waiting[]): void {
    const nowMs = this.#options.clock.now()
    this.#waiting.unshift(...trip.filter(({ untilMs }) => untilMs > nowMs))
    for (const { end, untilMs } of trip) {
      if (untilMs <= nowMs) this.#options.told(end, undefined)
    }
  }
}
