/** A call in the queue that only waits. */
import type { CallerSignal } from '../src/core/abort.js'
import { Entry, type Leaving } from '../src/guard/entry.js'

interface About {
  name?: string
  lane?: string
  priority?: number
  arrivedMs: number
  deadlineMs?: number
  signal?: CallerSignal | undefined
  onLeave?(why: Leaving): void
  onAborted?(): void
}

export class RoomGuest extends Entry {
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

  onLeave(why: Leaving): void {
    this.#about.onLeave?.(why)
  }

  onAborted(): void {
    this.#about.onAborted?.()
  }
}
