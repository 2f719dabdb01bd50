/** Keeps the leases of jobs that run, all in one trip, and says which of them are lost. */
import type { Clock, Timer } from '../../core/clock.js'
import type { Extended, ExtendRequest } from '../../store/queue-port.js'

export interface Leased {
  readonly id: string
  readonly turn: number
  /** What is to be told of how far it is. */
  progressText: string | undefined
  /** Somebody else may have it from then on. */
  leaseEndsMs: number
  stop(why: 'lost' | 'cancelled'): void
}

export interface LeasesOptions {
  clock: Clock
  leaseMs: number
  running: ReadonlyMap<string, Leased>
  extend(leases: ExtendRequest['leases']): Promise<Extended[]>
}

/** So often within a lease. */
const BEATS = 3

export class Leases {
  readonly #options: LeasesOptions
  #timer: Timer | undefined
  #closed = false

  constructor(options: LeasesOptions) {
    this.#options = options
  }

  /** Something runs. */
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
  }

  async #beat(): Promise<void> {
    const { clock, leaseMs, running, extend } = this.#options
    const sentMs = clock.now()
    for (const job of [...running.values()]) if (job.leaseEndsMs <= sentMs) job.stop('lost')
    const jobs = [...running.values()]
    if (jobs.length === 0) return
    this.begin()
    try {
      const leases = jobs.map(({ id, turn, progressText: progress }) => ({ id, turn, progress }))
      for (const job of jobs) job.progressText = undefined
      const answers = await extend(leases)
      for (const [index, job] of jobs.entries()) {
        const answer = answers[index]
        if (answer !== 'lost') job.leaseEndsMs = sentMs + leaseMs
        if (answer === 'lost' || answer === 'cancelled') job.stop(answer)
      }
    } catch {
      // The next beat tries again; a job whose time has run out meanwhile is stopped then.
    }
  }
}
