/**
 * Renews the leases of running jobs in one round trip, and stops jobs that are lost or cancelled. Progress is sent in
 * a separate round trip, at most every `PROGRESS_MS`.
 */
import type { Clock, Timer } from '../../core/time/clock.js'
import type { Extended, ExtendRequest } from '../../store/queue-port.js'

export interface Leased {
  readonly id: string
  readonly turn: number
  /** Progress that is to be reported. */
  progressText: string | undefined
  /** Another worker may take it from then on. */
  leaseEndsMs: number
  stop(why: 'lost' | 'cancelled'): void
}

export interface LeasesOptions {
  clock: Clock
  leaseMs: number
  running: ReadonlyMap<string, Leased>
  extend(leases: ExtendRequest['leases']): Promise<Extended[]>
}

/** Renewals within one lease. */
const BEATS = 3
const PROGRESS_MS = 200

export class Leases {
  readonly #options: LeasesOptions
  #timer: Timer | undefined
  #progressTimer: Timer | undefined
  #progressSentMs = Number.NEGATIVE_INFINITY
  #closed = false

  constructor(options: LeasesOptions) {
    this.#options = options
  }

  /** Starts the timer while jobs are running. */
  begin(): void {
    if (this.#timer !== undefined || this.#closed) return
    const { clock, leaseMs } = this.#options
    this.#timer = clock.schedule(leaseMs / BEATS, () => {
      this.#timer = undefined
      void this.#beat()
    })
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#progressTimer?.cancel()
  }

  /** A job has reported progress. */
  progressed(): void {
    if (this.#progressTimer !== undefined || this.#closed) return
    const { clock, running } = this.#options
    const waitMs = Math.max(0, this.#progressSentMs + PROGRESS_MS - clock.now())
    this.#progressTimer = clock.schedule(waitMs, () => {
      this.#progressTimer = undefined
      this.#progressSentMs = clock.now()
      void this.#renew([...running.values()].filter((job) => job.progressText !== undefined))
    })
  }

  /** Renews the leases now, because the message that a job was cancelled may have been lost. */
  check(): void {
    void this.#renew([...this.#options.running.values()])
  }

  async #beat(): Promise<void> {
    const { clock, running } = this.#options
    const nowMs = clock.now()
    for (const job of [...running.values()]) if (job.leaseEndsMs <= nowMs) job.stop('lost')
    const jobs = [...running.values()]
    if (jobs.length === 0) return
    this.begin()
    await this.#renew(jobs)
  }

  async #renew(jobs: readonly Leased[]): Promise<void> {
    if (jobs.length === 0 || this.#closed) return
    const { clock, leaseMs, extend } = this.#options
    const sentMs = clock.now()
    const leases = jobs.map(({ id, turn, progressText: progress }) => ({ id, turn, progress }))
    try {
      for (const job of jobs) job.progressText = undefined
      const answers = await extend(leases)
      for (const [index, job] of jobs.entries()) {
        const answer = answers[index]
        if (answer !== 'lost') job.leaseEndsMs = sentMs + leaseMs
        if (answer === 'lost' || answer === 'cancelled') job.stop(answer)
      }
    } catch {
      // The next renewal repeats it. A job whose lease has expired by then is stopped.
      for (const [index, job] of jobs.entries()) job.progressText ??= leases[index]?.progress
    }
  }
}
