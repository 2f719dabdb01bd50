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
    const status = this.phase === 'ready' ? 200 : 503
    return { status, body: JSON.stringify({ status: this.phase, ...this.#degraded() }) }
  }

  /** Requests are served without the store as well, so this is for people and not for load balancers. */
  #degraded(): { degraded: true; guards: SpillwayHealth['guards'] } | undefined {
    const { status, guards } = this.#shared()
    return status === 'degraded' ? { degraded: true, guards } : undefined
  }
}
