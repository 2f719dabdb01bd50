/**
 * The last decisions of a pod, for whoever asks why. Not all of them: under load a few of those that come and a few
 * of those that are refused, of each kind at least one a second; when nobody looks, fewer still. A guard without a
 * log pays a branch for it.
 */
import type { Clock } from '../../core/time/clock.js'
import type { DecisionRecord } from './decision-record.js'

const WINDOW_MS = 100
/** In each window: so many calls are followed on their way, so many refusals are noted besides. */
const WATCHED = { traces: 4, refusals: 4 }
const UNWATCHED = { traces: 1, refusals: 1 }
const MOST_KEPT = 500

export class DecisionLog {
  readonly clock: Clock
  /** Somebody looks. */
  watched = false
  /** Calls since the log began, noted or not. */
  seen = 0
  readonly #ring: DecisionRecord[] = []
  #nextId = 1
  #windowEndMs = Number.NEGATIVE_INFINITY
  #seenBefore = 0
  /** One in so many calls is followed. */
  #every = 1
  #skipped = 0
  #traces = 0
  #refusals = 0

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** A call has come. Answers whether to follow it. */
  arrive(nowMs: number): boolean {
    this.seen++
    if (nowMs >= this.#windowEndMs) this.#turn(nowMs)
    if (++this.#skipped < this.#every || this.#traces <= 0) return false
    this.#skipped = 0
    this.#traces--
    return true
  }

  /** Whether one more refusal may be noted, of a call that nobody has followed. */
  mayNote(nowMs: number): boolean {
    if (nowMs >= this.#windowEndMs) this.#turn(nowMs)
    return this.#refusals-- > 0
  }

  note(record: Omit<DecisionRecord, 'id'>): void {
    if (this.#ring.length >= MOST_KEPT) this.#ring.splice(0, MOST_KEPT / 2)
    this.#ring.push({ ...record, id: this.#nextId++ })
  }

  /** The id that the next one gets. */
  get nextId(): number {
    return this.#nextId
  }

  /** Those from this id on that are still known, the newest ones if there are more than so many. */
  since(id: number, most: number): readonly DecisionRecord[] {
    const first = this.#nextId - this.#ring.length
    return this.#ring.slice(Math.max(0, id - first, this.#ring.length - most))
  }

  /** What came in the last window says how many may come in this one. */
  #turn(nowMs: number): void {
    const { traces, refusals } = this.watched ? WATCHED : UNWATCHED
    const came = nowMs - this.#windowEndMs < WINDOW_MS ? this.seen - this.#seenBefore : 0
    this.#every = Math.max(1, Math.ceil(came / traces))
    this.#skipped = this.#every - 1
    this.#seenBefore = this.seen
    this.#traces = traces
    this.#refusals = refusals
    this.#windowEndMs = nowMs + WINDOW_MS
  }
}
