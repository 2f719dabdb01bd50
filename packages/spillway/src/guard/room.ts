/**
 * The only place where a call waits. Ordered by priority, then by age, and a low priority rises with
 * its age; bounded, and when full it gives up the least important, newest entry. Knows nothing of
 * what entries wait for: the dispatcher takes them out and, if there was nothing for them, puts them
 * back where they were.
 */
import { type CallerSignal, onAbort } from '../core/abort.js'
import { PRIORITIES, type Priority } from '../core/options/priority.js'
import type { Clock } from '../core/time/clock.js'
import type { Entry, Leaving } from './entry.js'
import { Patience } from './patience.js'
import { RoomLane } from './room-lane.js'

export interface RoomOptions {
  clock: Clock
  /** Entries that may wait. */
  size: number
  /** Longest wait. */
  timeoutMs: number
  /** A wait of the oldest entry over this, for as long again, is a standing queue. */
  targetMs: number
  /** Waiting so long is worth one step of priority. */
  agingMs: number
}

export class Room {
  readonly #options: RoomOptions
  readonly #lanes = new Map<string, RoomLane>()
  /** Nearly always the same as last time. */
  #lastLane: RoomLane | undefined
  /** Nothing: everybody may wait for ever. */
  readonly #patience: Patience | undefined
  #entered = 0
  length = 0
  /** The lane in which everybody waits, if it is only one. */
  onlyLane: string | undefined

  constructor(options: RoomOptions) {
    this.#options = options
    const { clock, timeoutMs } = options
    if (timeoutMs === Number.POSITIVE_INFINITY) return
    this.#patience = new Patience(clock, timeoutMs, (entry) => this.#loseOne(entry))
  }

  /** Lanes in which somebody waits. */
  get lanes(): IterableIterator<string> {
    return this.#lanes.keys()
  }

  /** All places are taken. */
  get full(): boolean {
    return this.length >= this.#options.size
  }

  /** Whether there would be a place. `spare`: there is something free for so many, now. */
  hasPlace(priority: number, spare: number): boolean {
    return this.length < this.#options.size + spare || this.#leastBelow(priority) !== undefined
  }

  /** Takes somebody in, in whose place another may have to go, if there is a place. */
  join(entry: Entry, nowMs: number, spare: number): boolean {
    if (this.length >= this.#options.size + spare) {
      const least = this.#leastBelow(entry.priority)
      if (least === undefined) return false
      this.dismiss(least, 'displaced')
    }
    entry.enter(this.#entered++, nowMs)
    this.#insert(entry)
    this.#patience?.add(entry)
    const { deadlineMs, signal } = entry
    const hurries = deadlineMs <= nowMs + this.#options.timeoutMs && deadlineMs !== Infinity
    if (hurries || signal !== undefined) {
      entry.forget = this.#heed(entry, hurries ? deadlineMs : undefined, signal)
    }
    return true
  }

  /** Its deadline, where that is earlier than the longest wait, and its caller. */
  #heed(
    entry: Entry,
    deadlineMs: number | undefined,
    signal: CallerSignal | undefined,
  ): () => void {
    const { clock } = this.#options
    const timer =
      deadlineMs === undefined
        ? undefined
        : clock.schedule(deadlineMs - clock.now(), () => this.dismiss(entry, 'deadline'))
    const forgetSignal =
      signal &&
      onAbort(signal, () => {
        this.remove(entry)
        entry.onAborted(signal.reason)
      })
    return () => {
      timer?.cancel()
      forgetSignal?.()
    }
  }

  #loseOne(entry: Entry): void {
    const late = entry.deadlineMs <= entry.enteredMs + this.#options.timeoutMs
    this.dismiss(entry, late ? 'deadline' : 'timeout')
  }

  /** It leaves at this time, whatever happens. */
  untilMs({ enteredMs, deadlineMs }: Entry): number {
    return Math.min(enteredMs + this.#options.timeoutMs, deadlineMs)
  }

  /** Takes the next in turn out to ask for what it wants. It still counts as waiting for its time. */
  take(lane: string, nowMs: number): Entry | undefined {
    const own = this.#known(lane)
    if (own === undefined) return undefined
    this.#control(own, nowMs)
    const entry = own.next(nowMs)
    if (entry === undefined) return undefined
    own.take(entry)
    this.#shrunk(own)
    entry.state = 'asking'
    return entry
  }

  /** There was nothing for it. */
  putBack(entry: Entry): void {
    if (entry.state !== 'asking') return
    entry.state = 'waiting'
    this.#insert(entry)
  }

  /** It has what it wanted, or has been told otherwise. */
  remove(entry: Entry): void {
    const { state } = entry
    if (state === 'gone') return
    entry.state = 'gone'
    if (state === 'waiting') {
      const lane = this.#known(entry.lane) as RoomLane
      lane.forget(entry)
      this.#shrunk(lane)
    }
    this.#patience?.forget()
    entry.forget?.()
  }

  dismiss(entry: Entry, why: Leaving): void {
    if (entry.state === 'gone') return
    this.remove(entry)
    entry.onLeave(why)
  }

  /** Everybody has left, and nobody comes any more. */
  close(): void {
    this.#patience?.close()
  }

  lengthOf(lane: string): number {
    return this.length === 0 ? 0 : (this.#known(lane)?.length ?? 0)
  }

  /** Whoever waits in a lane, the next in turn of each priority first. */
  waiting(lane: string): Entry[] {
    return this.#lanes.get(lane)?.waiting() ?? []
  }

  /** The lane waits for a known time. */
  excuse(lane: string, untilMs: number): void {
    this.#lanes.get(lane)?.excuse(untilMs)
  }

  /** Which of the lanes has the entry whose turn it is. */
  bestOf(lanes: Iterable<string>, nowMs: number): string | undefined {
    let best: string | undefined
    let bestRank = Number.POSITIVE_INFINITY
    let bestArrivedMs = 0
    for (const lane of lanes) {
      const own = this.#lanes.get(lane)
      const entry = own?.next(nowMs)
      if (own === undefined || entry === undefined) continue
      const rank = own.rank(entry, nowMs)
      if (rank > bestRank || (rank === bestRank && entry.arrivedMs >= bestArrivedMs)) continue
      best = lane
      bestRank = rank
      bestArrivedMs = entry.arrivedMs
    }
    return best
  }

  /** How long the one has waited that has waited longest, not counting what was known in advance. */
  oldestWaitMs(nowMs: number): number {
    let longestMs = 0
    for (const lane of this.#lanes.values()) {
      longestMs = Math.max(longestMs, lane.oldestWaitMs(nowMs))
    }
    return longestMs
  }

  /** In some lane the line stands: the newest go first, and the oldest are let go. */
  get stands(): boolean {
    for (const { codel } of this.#lanes.values()) if (codel.standing) return true
    return false
  }

  lengthsByPriority(): Record<Priority, number> {
    const lengths = { critical: 0, high: 0, normal: 0, low: 0 }
    for (const { lines } of this.#lanes.values()) {
      for (const [index, { length }] of lines.entries()) {
        lengths[PRIORITIES[index] as Priority] += length
      }
    }
    return lengths
  }

  #insert(entry: Entry): void {
    let lane = this.#known(entry.lane)
    if (lane === undefined) {
      const { targetMs, agingMs } = this.#options
      lane = new RoomLane(entry.lane, targetMs, agingMs)
      this.#lanes.set(entry.lane, lane)
      this.#lanesChanged()
    }
    lane.insert(entry)
    this.length++
  }

  /** One less in the lane. One that nobody waits in any more is forgotten: names may be many. */
  #shrunk(lane: RoomLane): void {
    this.length--
    if (lane.length > 0) return
    this.#lanes.delete(lane.name)
    this.#lastLane = undefined
    this.#lanesChanged()
  }

  #known(lane: string): RoomLane | undefined {
    if (this.#lastLane?.name === lane) return this.#lastLane
    const known = this.#lanes.get(lane)
    if (known !== undefined) this.#lastLane = known
    return known
  }

  #lanesChanged(): void {
    this.onlyLane = this.#lanes.size === 1 ? this.#lanes.keys().next().value : undefined
  }

  #control(lane: RoomLane, nowMs: number): void {
    const { codel } = lane
    codel.look(nowMs, lane.oldestWaitMs(nowMs))
    // One for each that is served, at most: slots come free in waves, and what was due to go between
    // two of them must not take those along who are served in the next.
    if (!codel.standing || !codel.drop(nowMs)) return
    const entry = lane.leastImportantOldest
    if (entry === undefined) return
    this.dismiss(entry, 'overload')
    codel.look(nowMs, lane.oldestWaitMs(nowMs))
  }

  /** The least important, newest entry, if it is less important than this. */
  #leastBelow(importance: number): Entry | undefined {
    for (let priority = PRIORITIES.length - 1; priority > importance; priority--) {
      let newest: Entry | undefined
      for (const { lines } of this.#lanes.values()) {
        const last = lines[priority]?.last
        if (last !== undefined && (newest === undefined || last.arrivedMs > newest.arrivedMs)) {
          newest = last
        }
      }
      if (newest !== undefined) return newest
    }
    return undefined
  }
}
