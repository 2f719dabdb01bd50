/** Whether this process works at all, and whether it wants to be sent requests. */
import type { SpillwayHealth } from 'spillway/health'

type Phase = 'starting' | 'ready' | 'draining'

/** All workers of this gateway. */
interface Workers {
  readonly ready: number
  readonly total: number
  /** Whether all of them have been ready once. */
  readonly started: boolean
}

export class Health {
  phase: Phase = 'starting'
  readonly #shared: () => SpillwayHealth
  readonly #workers: (() => Workers) | undefined

  /** `shared`: whether everything that should be shared with other gateways is. `workers`: set in a worker. */
  constructor(shared: () => SpillwayHealth, workers?: () => Workers) {
    this.#shared = shared
    this.#workers = workers
  }

  /** What is answered at a path; nothing at others. */
  at(path: string): { status: number; body: string } | undefined {
    if (path === '/health/live') return { status: 200, body: '{"status":"live"}' }
    if (path !== '/health/ready') return undefined
    const { status: sharing, guards } = this.#shared()
    // Whether there is a store is known within a second or so: before that, limits would be guesses.
    const workers = this.#workers?.()
    const unsure = Object.values(guards).includes('starting') || workers?.started === false
    const phase = unsure && this.phase === 'ready' ? 'starting' : this.phase
    // Requests are served without the store as well, so this is for people and not for load balancers.
    const degraded = sharing === 'degraded' ? { degraded: true, guards } : undefined
    const counts = workers && { workers: { ready: workers.ready, total: workers.total } }
    const body = JSON.stringify({ status: phase, ...counts, ...degraded })
    return { status: phase === 'ready' ? 200 : 503, body }
  }
}
