/** Who waits in the room, and what the room keeps of it. */
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

/** Nothing to clean up: there is nobody to tell. */
const RESOURCE_OPTIONS = { requireManualDestroy: true }

/**
 * Who waits. Ten thousand may, and whatever waits is copied about by the garbage collector: so a call
 * is itself what stands in the room, and what remembers the async context it came in (hence
 * `extends`), and it points to no other entry. `H`: what is kept for it.
 */
export abstract class Entry<H = unknown> extends AsyncResource {
  abstract readonly lane: string
  abstract readonly priority: number
  /** When the call came: a retry keeps its place. */
  abstract readonly arrivedMs: number
  /** Nobody wants the answer after this. */
  abstract readonly deadlineMs: number
  abstract readonly signal: CallerSignal | undefined
  /** As which one it came into the room. */
  order = 0
  /** Not in the room, before as after. */
  state: 'waiting' | 'asking' | 'gone' = 'gone'
  /** When it came into the room, if that is not when its call came. */
  #laterMs: number | undefined
  /** Stops heeding its deadline and its caller's signal, where there is one or the other. */
  forget: (() => void) | undefined
  /** Kept for it while the store is asked for the rest. */
  held: H | undefined

  constructor() {
    super('SpillwayCall', RESOURCE_OPTIONS)
  }

  /** It had to leave. */
  abstract onLeave(why: Leaving): void
  /** Its caller has aborted, and it has left. */
  abstract onAborted(reason: unknown): void

  /** Comes into the room, once: its place may stay in a line for a while after it has left. */
  enter(order: number, nowMs: number): void {
    this.order = order
    this.state = 'waiting'
    // A number with a fraction is an object of its own.
    if (nowMs !== this.arrivedMs) this.#laterMs = nowMs
  }

  get enteredMs(): number {
    return this.#laterMs ?? this.arrivedMs
  }
}

/** Many may come in the same moment. */
export function isBefore(one: Entry, other: Entry): boolean {
  if (one.arrivedMs !== other.arrivedMs) return one.arrivedMs < other.arrivedMs
  return one.order < other.order
}
