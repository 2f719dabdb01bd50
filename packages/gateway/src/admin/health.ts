/** Whether this process works at all, and whether it wants to be sent requests. */

type Phase = 'starting' | 'ready' | 'draining'

export class Health {
  phase: Phase = 'starting'

  /** What is answered at a path; nothing at others. */
  at(path: string): { status: number; body: string } | undefined {
    if (path === '/health/live') return { status: 200, body: '{"status":"live"}' }
    if (path !== '/health/ready') return undefined
    const status = this.phase === 'ready' ? 200 : 503
    return { status, body: JSON.stringify({ status: this.phase }) }
  }
}
