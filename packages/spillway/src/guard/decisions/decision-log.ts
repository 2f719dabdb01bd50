/**
 * The last decisions of a pod, to explain refusals. Under load only a sample of calls and refusals is kept, at least
 * one refusal of each code per second; while no dashboard is open, fewer still.
 */
import type { Clock } from '../../core/time/clock.js'
import type { DecisionRecord } from './decision-record.js'

const WINDOW_MS = 100
/** Most calls traced, and most further refusals recorded, in each window. */
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
  /** Ids of the requests that have a record. */
  #requests = new Set<string>()
  #nextId = 1
  #windowEndMs = Number.NEGATIVE_INFINITY
  #seenInEarlierWindows = 0
  /** One of this number of calls is traced. */
  #sampleInterval = 1
  #skipped = 0
  #tracesLeft = 0
  #refusalsLeft = 0

  constructor(clock: Clock) {
    this.clock = clock
  }

  /**
   * Counts a call and returns whether to trace it. `replacedRequest`: the request of the call that this one replaces;
   * if it has a record, this call is traced as well.
   */
  callArrived(nowMs: number, replacedRequest?: string): boolean {
    this.seen++
    if (nowMs >= this.#windowEndMs) this.#startWindow(nowMs)
    if (replacedRequest !== undefined && this.#requests.has(replacedRequest)) return true
    if (++this.#skipped < this.#sampleInterval || this.#tracesLeft <= 0) return false
    this.#skipped = 0
    this.#tracesLeft--
    return true
  }

  /**
   * Whether one more refusal or fallback of an untraced call may be recorded. Always true for a request that has a
   * record.
   */
  mayRecord(nowMs: number, replacedRequest?: string): boolean {
    if (nowMs >= this.#windowEndMs) this.#startWindow(nowMs)
    if (replacedRequest !== undefined && this.#requests.has(replacedRequest)) return true
    return this.#refusalsLeft-- > 0
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

  /** The id of the next record. */
  get nextId(): number {
    return this.#nextId
  }

  /** Records from this id on, at most the newest `most`. */
  since(id: number, most: number): readonly DecisionRecord[] {
    const first = this.#nextId - this.#ring.length
    return this.#ring.slice(Math.max(0, id - first, this.#ring.length - most))
  }

  /** Starts a window. The number of calls in the previous one determines its sample. */
  #startWindow(nowMs: number): void {
    const { traces, refusals } = this.watched ? WATCHED : UNWATCHED
    const seenInWindow =
      nowMs - this.#windowEndMs < WINDOW_MS ? this.seen - this.#seenInEarlierWindows : 0
    this.#sampleInterval = Math.max(1, Math.ceil(seenInWindow / traces))
    this.#skipped = this.#sampleInterval - 1
    this.#seenInEarlierWindows = this.seen
    this.#tracesLeft = traces
    this.#refusalsLeft = refusals
    this.#windowEndMs = nowMs + WINDOW_MS
  }
}
