/** Who waits in the room, and what the room keeps of each. */
import { AsyncResource } from 'node:async_hooks'
import type { CallerSignal } from '../core/abort.js'

/** Why somebody had to leave. */
export type Leaving =
  /** Nothing came free in time. */
  | 'timeout'
  | 'deadline'
  /** Somebody more important came, and there was no place. */
  | 'displaced'
  /** The queue was standing. */
  | 'overload'

/** Who waits. */
export interface Guest {
  readonly lane: string
  readonly priority: number
  /** When the call came: a retry keeps its place. */
  readonly arrivedMs: number
  /** Nobody wants the answer after this. */
  readonly deadlineMs: number
  readonly signal: CallerSignal | undefined
  /** It had to leave. */
  onLeave(why: Leaving, entry: Entry): void
  /** Its caller has aborted, and it has left. */
  onAborted(reason: unknown, entry: Entry): void
}

/** Nothing to clean up: there is nobody to tell. */
const RESOURCE_OPTIONS = { requireManualDestroy: true }

/**
 * A guest's stay in the room. Ten thousand may wait, and whatever waits is copied about by the
 * garbage collector: so it is one object, which is also what remembers the async context its call
 * came in (hence `extends`), and it points to no other entry. `H`: what is kept for it.
 */
export class Entry<G extends Guest = Guest, H = unknown> extends AsyncResource {
  readonly guest: G
  /** As which one it came into the room. */
  readonly order: number
  state: 'waiting' | 'asking' | 'gone' = 'waiting'
  /** When it came into the room, this time, if that is not when its call came. */
  readonly #laterMs: number | undefined
  /** Stops heeding its deadline and its caller's signal, where there is one or the other. */
  forget: (() => void) | undefined
  /** Kept for it while the store is asked for the rest. */
  held: H | undefined

  constructor(guest: G, enteredMs: number, order: number) {
    super('SpillwayWaiting', RESOURCE_OPTIONS)
    this.guest = guest
    this.order = order
    // A number with a fraction is an object of its own.
    this.#laterMs = enteredMs === guest.arrivedMs ? undefined : enteredMs
    this.forget = undefined
    this.held = undefined
  }

  get lane(): string {
    return this.guest.lane
  }

  get priority(): number {
    return this.guest.priority
  }

  get arrivedMs(): number {
    return this.guest.arrivedMs
  }

  get enteredMs(): number {
    return this.#laterMs ?? this.guest.arrivedMs
  }
}

/** Many may come in the same moment. */
export function isBefore(one: Entry, other: Entry): boolean {
  if (one.arrivedMs !== other.arrivedMs) return one.arrivedMs < other.arrivedMs
  return one.order < other.order
}
