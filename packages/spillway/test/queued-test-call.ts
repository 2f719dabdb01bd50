/** A call in the queue that only waits. */
import type { CallerSignal } from '../src/core/abort.js'
import { type LeaveReason, QueuedCall } from '../src/shared/permit-queue/queued-call.js'

interface About {
  name?: string
  lane?: string
  priority?: number
  arrivedMs: number
  deadlineMs?: number
  signal?: CallerSignal | undefined
  onLeave?(why: LeaveReason): void
  onAborted?(): void
}

export class TestCall extends QueuedCall {
  readonly name: string
  readonly lane: string
  readonly priority: number
  readonly arrivedMs: number
  readonly deadlineMs: number
  readonly signal: CallerSignal | undefined
  readonly #about: About

  constructor(about: About) {
    super()
    this.#about = about
    this.name = about.name ?? 'call'
    this.lane = about.lane ?? 'default'
    this.priority = about.priority ?? 2
    this.arrivedMs = about.arrivedMs
    this.deadlineMs = about.deadlineMs ?? Number.POSITIVE_INFINITY
    this.signal = about.signal
  }

  onLeave(why: LeaveReason): void {
    this.#about.onLeave?.(why)
  }

  onAborted(): void {
    this.#about.onAborted?.()
  }
}
