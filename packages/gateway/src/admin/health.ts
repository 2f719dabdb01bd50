/** Liveness and readiness of a gateway. */
import type { SpillwayHealth } from 'spillway/health'

type Phase = 'starting' | 'ready' | 'draining'

type Status = Phase | 'overloaded'

/** All workers of this gateway. */
interface Workers {
  readonly ready: number
  readonly total: number
  /** Number of ready workers that are overloaded. */
  readonly overloaded: number
  /** Whether all of them have been ready once, and the data port is open. */
  readonly started: boolean
}

export interface HealthOptions {
  /** Whether everything that should be shared with other gateways is. */
  readonly shared: () => SpillwayHealth
  /** Whether this process has been overloaded for `health.overload.forMs`. */
  readonly isOverloaded: () => boolean
  /** Set in a worker process. */
  readonly workers?: (() => Workers) | undefined
}

export class Health {
  phase: Phase = 'starting'
  readonly #options: HealthOptions

  constructor(options: HealthOptions) {
    this.#options = options
  }

  /** The answer to a health path; undefined for other paths. */
  at(path: string): { status: number; body: string } | undefined {
    if (path === '/health/live') return { status: 200, body: '{"status":"live"}' }
    if (path !== '/health/ready') return undefined
    const { status: sharing, guards } = this.#options.shared()
    const workers = this.#options.workers?.()
    // Whether there is a store is known within a second or so: before that, limits would be guesses.
    const unsure = Object.values(guards).includes('starting') || workers?.started === false
    const status = this.#status(unsure, workers)
    // For people, not for load balancers: requests are also served without the store.
    const degraded = sharing === 'degraded' ? { degraded: true, guards } : undefined
    const counts = workers && { workers: { ready: workers.ready, total: workers.total } }
    const body = JSON.stringify({ status, ...counts, ...degraded })
    return { status: status === 'ready' ? 200 : 503, body }
  }

  #status(unsure: boolean, workers: Workers | undefined): Status {
    if (this.phase !== 'ready') return this.phase
    if (unsure) return 'starting'
    // All workers share one port, so the gateway is ready while at least one of them is.
    const isOverloaded =
      workers === undefined
        ? this.#options.isOverloaded()
        : workers.overloaded > 0 && workers.overloaded >= workers.ready
    return isOverloaded ? 'overloaded' : 'ready'
  }
}
