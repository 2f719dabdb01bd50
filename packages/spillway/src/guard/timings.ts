/** How long calls wait and attempts take. Measured once somebody wants to know: it takes a look at the clock. */
import { Durations } from '../core/collections/histogram.js'

/** Later ones are few, and alike. */
const ATTEMPTS = ['1', '2', '3+'] as const

export interface GuardTimings {
  name: string
  /** From a call's arrival until its first attempt begins. */
  queueWait: Durations
  /** By attempt: the first, the second, later ones. */
  attempts: readonly { attempt: (typeof ATTEMPTS)[number]; durations: Durations }[]
}

export class Timings implements GuardTimings {
  readonly name: string
  readonly queueWait = new Durations()
  readonly attempts = ATTEMPTS.map((attempt) => ({ attempt, durations: new Durations() }))

  constructor(name: string) {
    this.name = name
  }

  began(waitedMs: number): void {
    this.queueWait.add(waitedMs / 1_000)
  }

  ended(attempt: number, tookMs: number): void {
    const place = Math.min(attempt, ATTEMPTS.length) - 1
    this.attempts[place]?.durations.add(tookMs / 1_000)
  }
}
