/**
 * The last decisions of a pod, to explain refusals. Under load only a sample of calls and refusals is kept, at least
 * one refusal of each code per second; while no dashboard is open, fewer still.
 */
import type { Clock } from '../../core/time/clock.js'
import type { DecisionRecord } from './decision-record.js'

const WINDOW_MS = 100
/** Calls that are followed, and further refusals that are noted, in each window. */
const WATCHED = { traces: 4, refusals: 4 }
const UNWATCHED = { traces: 1, refusals: 1 }
const MOST_KEPT = 500

export class DecisionLog {
  readonly clock: Clock
  /** A dashboard is open. */
  watched = false
  /** Calls since the log began, noted or not. */
  seen = 0
  readonly #ring: DecisionRecord[] = []
  /** Requests of the records. */
  #requests = new Set<string>()
  #nextId = 1
  #windowEndMs = Number.NEGATIVE_INFINITY
  #seenBefore = 0
  /** One of this number of calls is traced. */
  #every = 1
  #skipped = 0
  #traces = 0
  #refusals = 0

  constructor(clock: Clock) {
    this.clock = clock
  }

  /**
   * A call has come. Answers whether to follow it. `replacedRequest`: it replaces a call of this request, and is
   * followed if that one was.
   */
  arrive(nowMs: number, replacedRequest?: string): boolean {
    this.seen++
    if (nowMs >= this.#windowEndMs) this.#turn(nowMs)
    if (replacedRequest !== undefined && this.#requests.has(replacedRequest)) return true
    if (++this.#skipped < this.#every || this.#traces <= 0) return false
    this.#skipped = 0
    this.#traces--
    return true
  }

  /**
   * Whether one more refusal or fallback of a call that is not followed may be noted. That of a request with a record
   * always may.
   */
  mayNote(nowMs: number, replacedRequest?: string): boolean {
    if (nowMs >= this.#windowEndMs) this.#turn(nowMs)
    if (replacedRequest !== undefined && this.#requests.has(replacedRequest)) return true
    return this.#refusals-- > 0
  }

  note(record: Omit<DecisionRecord, 'id'>): void {
    if (this.#ring.length >= MOST_KEPT) this.#dropOldest()
    this.#ring.push({ ...record, id: this.#nextId++ })
    if (record.requestId !== undefined) this.#requests.add(record.requestId)
  }

  #dropOldest(): void {
    this.#ring.splice(0, MOST_KEPT / 2)
    this.#requests = new Set(this.#ring.flatMap(({ requestId }) => requestId ?? []))
  }

  /** The records of one request, the oldest first. */
  ofRequest(requestId: string): readonly DecisionRecord[] {
    if (!this.#requests.has(requestId)) return []
    return this.#ring.filter((record) => record.requestId === requestId)
  }

  /** The id that the next one gets. */
  get nextId(): number {
    return this.#nextId
  }

  /** Records from this id on, at most the newest `most`. */
  since(id: number, most: number): readonly DecisionRecord[] {
    const first = this.#nextId - this.#ring.length
    return this.#ring.slice(Math.max(0, id - first, this.#ring.length - most))
  }

  /** The number of calls in the last window determines the sample in this one. */
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
