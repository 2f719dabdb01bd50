/**
 * Requests probes of a half-open breaker from the store. One round trip at a time serves all calls that need
 * one. When all probes of the fleet are taken, the store is not asked again for a moment.
 */

import { isThenable } from '../../../core/thenable.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import type { MaybePromise, ProbeReply } from '../../../store/port.js'

export interface ProbePermitsOptions {
  clock: Clock
  /** The prefix that makes the ids of probes unique. */
  pod: string
  /** Probes at once in the whole fleet. */
  probes: number
  /** A probe that runs longer returns its permit and counts as nothing. */
  maxProbeMs: number
  /** A probe has run for `maxProbeMs`. */
  onOverdue(id: string): void
  request(ids: readonly string[]): MaybePromise<ProbeReply>
}

/**
 * A probe, or why there is none. `full`: all probes are running. `changed`: the breaker is no longer half-open.
 * `unknown`: the store did not answer.
 */
export type ProbeGrant = { id: string; generation: number } | 'full' | 'changed' | 'unknown'

type Waiting = (grant: ProbeGrant) => void

/** After all probes were taken, the store is not asked again before this. */
const FULL_MS = 20

export class ProbePermits {
  readonly #options: ProbePermitsOptions
  #lastNumber = 0
  #requesting = false
  #waiting: Waiting[] = []
  #fullUntilMs = Number.NEGATIVE_INFINITY
  /** Running probes of this pod, and the timers that end them. */
  readonly #running = new Map<string, Timer>()

  constructor(options: ProbePermitsOptions) {
    this.#options = options
  }

  /** Returns the grant at once if the store replies synchronously. */
  take(): MaybePromise<ProbeGrant> {
    if (this.#options.clock.now() < this.#fullUntilMs) return 'full'
    let grant: ProbeGrant | undefined
    let settle: Waiting = (each) => {
      grant = each
    }
    this.#waiting.push((each) => settle(each))
    this.#request()
    if (grant !== undefined) return grant
    return new Promise((resolve) => {
      settle = resolve
    })
  }

  /** Unique ids for this number of probes. */
  createIds(count: number): string[] {
    return Array.from({ length: count }, () => `${this.#options.pod}:${++this.#lastNumber}`)
  }

  /** Renews the lease of a probe until it ends or has run for `maxProbeMs`. */
  begin(id: string): void {
    const { clock, maxProbeMs, onOverdue } = this.#options
    const timer = clock.schedule(maxProbeMs, () => {
      if (this.end(id)) onOverdue(id)
    })
    timer.unref()
    this.#running.set(id, timer)
  }

  /** Returns whether it was a running probe of this pod. */
  end(id: string): boolean {
    this.retryNow()
    this.#running.get(id)?.cancel()
    return this.#running.delete(id)
  }

  /** Cancels the timers of running probes. */
  close(): void {
    for (const timer of this.#running.values()) timer.cancel()
  }

  /** Probes may be free again, so the next request is sent without a pause. */
  retryNow(): void {
    this.#fullUntilMs = Number.NEGATIVE_INFINITY
  }

  /** No request is in flight, and no probe is running. */
  get isIdle(): boolean {
    return !this.#requesting && this.#running.size === 0
  }

  /** The ids of the running probes. */
  get running(): string[] {
    return [...this.#running.keys()]
  }

  #request(): void {
    if (this.#requesting || this.#waiting.length === 0) return
    const waiting = this.#waiting.splice(0)
    const ids = this.createIds(Math.min(waiting.length, this.#options.probes))
    this.#requesting = true
    let reply: MaybePromise<ProbeReply>
    try {
      reply = this.#options.request(ids)
    } catch {
      return this.#failed(waiting)
    }
    if (!isThenable(reply)) return this.#received(waiting, ids, reply)
    reply.then(
      (each) => this.#received(waiting, ids, each),
      () => this.#failed(waiting),
    )
  }

  #received(waiting: Waiting[], ids: readonly string[], { granted, view }: ProbeReply): void {
    this.#requesting = false
    const { generation } = view
    for (const id of ids.slice(0, granted)) {
      this.begin(id)
      waiting.shift()?.({ id, generation })
    }
    const halfOpen = view.kind === 2
    if (halfOpen && waiting.length > 0) {
      this.#fullUntilMs = this.#options.clock.now() + FULL_MS
      // Calls that came meanwhile would get the same reply.
      waiting.push(...this.#waiting.splice(0))
    }
    for (const settle of waiting) settle(halfOpen ? 'full' : 'changed')
    this.#request()
  }

  /** The store may have granted probes; their leases are not renewed. */
  #failed(waiting: readonly Waiting[]): void {
    this.#requesting = false
    for (const settle of waiting) settle('unknown')
    this.#request()
  }
}
