/** Whether this process works at all, and whether it wants to be sent requests. */
import type { SpillwayHealth } from 'spillway'

type Phase = 'starting' | 'ready' | 'draining'

export class Health {
  phase: Phase = 'starting'
  readonly #shared: () => SpillwayHealth

  /** `shared`: whether everything that should be shared with other gateways is. */
  constructor(shared: () => SpillwayHealth) {
    this.#shared = shared
  }

  /** What is answered at a path; nothing at others. */
  at(path: string): { status: number; body: string } | undefined {
    if (path === '/health/live') return { status: 200, body: '{"status":"live"}' }
    if (path !== '/health/ready') return undefined
    const { status: sharing, guards } = this.#shared()
    // Whether there is a store is known within a second or so: before that, limits would be guesses.
    const unsure = Object.values(guards).includes('starting')
    const phase = unsure && this.phase === 'ready' ? 'starting' : this.phase
    // Requests are served without the store as well, so this is for people and not for load balancers.
    const degraded = sharing === 'degraded' ? { degraded: true, guards } : undefined
    const body = JSON.stringify({ status: phase, ...degraded })
    return { status: phase === 'ready' ? 200 : 503, body }
  }
}
