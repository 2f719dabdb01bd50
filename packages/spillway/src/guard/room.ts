/**
 * The only place where a call waits. Ordered by priority, then by age, and a low priority rises with
 * its age; bounded, and when full it gives up the least important, newest entry. Knows nothing of
 * what entries wait for: the dispatcher takes them out and, if there was nothing for them, puts them
 * back where they were.
 */
import { type CallerSignal, onAbort } from '../core/abort.js'
import type { Clock, Timer } from '../core/clock.js'
import { type Linked, LinkedList } from '../core/linked-list.js'
import { PRIORITIES, type Priority } from '../core/priority.js'
import { type Timed, TimerList } from '../core/timer-list.js'
import { CoDel } from './codel.js'

/** Why somebody had to leave. */
export type Leaving =
  /** Nothing came free in time. */
  | 'timeout'
  | 'deadline'
  /** Somebody more important came, and there was no place. */
  | 'displaced'
  /** The queue was standing. */
  | 'overload'

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

/** A guest's stay in the room. Ten thousand may wait: it is small, and its timer is in itself. */
export class Entry<G extends Guest = Guest> implements Linked<Entry>, Timed {
  before: Entry | undefined
  after: Entry | undefined
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  /** As which one it came into the room. */
  order = 0
  state: 'waiting' | 'asking' | 'gone' = 'waiting'
  /** For the deadline, where that is earlier than the longest wait. */
  timer: Timer | undefined
  forgetSignal: (() => void) | undefined

  constructor(
    readonly room: Room,
    readonly guest: G,
    /** When it came into the room, this time. */
    readonly enteredMs: number,
  ) {}

  get fromMs(): number {
    return this.enteredMs
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

  /** It leaves at this time, whatever happens. */
  get untilMs(): number {
    return Math.min(this.enteredMs + this.room.timeoutMs, this.guest.deadlineMs)
  }

  onTimeUp(): void {
    this.room.dismiss(this, 'timeout')
  }
}

/** One lane's part of the room: a list for each priority, oldest first. */
class Lane {
  readonly lists = PRIORITIES.map(() => new LinkedList<Entry>())
  length = 0
  /** Until then it waited for a time that was known: nobody's fault. */
  excusedMs = Number.NEGATIVE_INFINITY
  readonly codel: CoDel

  constructor(
    readonly name: string,
    targetMs: number,
  ) {
    this.codel = new CoDel(targetMs)
  }
}

export class Room {
  readonly #options: RoomOptions
  readonly #lanes = new Map<string, Lane>()
  /** Nearly always the same as last time. */
  #lastLane: Lane | undefined
  readonly #timers: TimerList
  #entered = 0
  length = 0
  /** The lane in which everybody waits, if it is only one. */
  onlyLane: string | undefined
  /** Longest wait. */
  readonly timeoutMs: number

  constructor(options: RoomOptions) {
    this.#options = options
    this.timeoutMs = options.timeoutMs
    this.#timers = new TimerList(options.clock, options.timeoutMs)
  }

  /** Lanes in which somebody waits. */
  get lanes(): IterableIterator<string> {
    return this.#lanes.keys()
  }

  /** Whether there would be a place. `spare`: there is something free for so many, now. */
  hasPlace(priority: number, spare: number): boolean {
    return this.length < this.#options.size + spare || this.#leastBelow(priority) !== undefined
  }

  /** Takes somebody in, in whose place another may have to go. Nothing: there is no place. */
  join<G extends Guest>(guest: G, nowMs: number, spare: number): Entry<G> | undefined {
    if (this.length >= this.#options.size + spare) {
      const least = this.#leastBelow(guest.priority)
      if (least === undefined) return undefined
      this.dismiss(least, 'displaced')
    }
    const entry = new Entry(this, guest, nowMs)
    entry.order = this.#entered++
    const { deadlineMs, signal } = guest
    const timeoutAtMs = nowMs + this.timeoutMs
    if (deadlineMs <= timeoutAtMs) this.#heedDeadline(entry, deadlineMs)
    else if (timeoutAtMs < Number.POSITIVE_INFINITY) this.#timers.add(entry)
    if (signal !== undefined) {
      entry.forgetSignal = onAbort(signal, () => {
        this.remove(entry)
        entry.guest.onAborted(signal.reason, entry)
      })
    }
    this.#insert(entry)
    return entry
  }

  #heedDeadline(entry: Entry, deadlineMs: number): void {
    if (deadlineMs === Number.POSITIVE_INFINITY) return
    const { clock } = this.#options
    entry.timer = clock.schedule(deadlineMs - clock.now(), () => this.dismiss(entry, 'deadline'))
  }

  /** Takes the next in turn out to ask for what it wants. It still counts as waiting for its time. */
  take(lane: string, nowMs: number): Entry | undefined {
    const own = this.#known(lane)
    if (own === undefined) return undefined
    this.#control(own, nowMs)
    const entry = this.#next(own, nowMs)
    if (entry === undefined) return undefined
    this.#unlink(entry)
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
    if (entry.state === 'waiting') this.#unlink(entry)
    entry.state = 'gone'
    this.#timers.remove(entry)
    entry.timer?.cancel()
    entry.forgetSignal?.()
  }

  dismiss(entry: Entry, why: Leaving): void {
    if (entry.state === 'gone') return
    this.remove(entry)
    entry.guest.onLeave(why, entry)
  }

  /** Everybody has left, and nobody comes any more. */
  close(): void {
    this.#timers.close()
  }

  lengthOf(lane: string): number {
    return this.length === 0 ? 0 : (this.#known(lane)?.length ?? 0)
  }

  /** Whoever waits in a lane, the next in turn of each priority first. */
  *waiting(lane: string): Generator<Entry> {
    for (const { first } of this.#lanes.get(lane)?.lists ?? []) {
      let each = first
      while (each !== undefined) {
        const { after } = each
        yield each
        each = after
      }
    }
  }

  /** The lane waits for a known time. */
  excuse(lane: string, untilMs: number): void {
    const own = this.#lanes.get(lane)
    if (own !== undefined) own.excusedMs = Math.max(own.excusedMs, untilMs)
  }

  /** Which of the lanes has the entry whose turn it is. */
  bestOf(lanes: Iterable<string>, nowMs: number): string | undefined {
    let best: string | undefined
    let bestRank = Number.POSITIVE_INFINITY
    let bestArrivedMs = 0
    for (const lane of lanes) {
      const own = this.#lanes.get(lane)
      const entry = own && this.#next(own, nowMs)
      if (entry === undefined) continue
      const rank = this.#rank(entry, nowMs)
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
      longestMs = Math.max(longestMs, oldestWaitMs(lane, nowMs))
    }
    return longestMs
  }

  lengthsByPriority(): Record<Priority, number> {
    const lengths = { critical: 0, high: 0, normal: 0, low: 0 }
    for (const { lists } of this.#lanes.values()) {
      for (const [index, { length }] of lists.entries()) {
        lengths[PRIORITIES[index] as Priority] += length
      }
    }
    return lengths
  }

  #insert(entry: Entry): void {
    let lane = this.#known(entry.lane)
    if (lane === undefined) {
      lane = new Lane(entry.lane, this.#options.targetMs)
      this.#lanes.set(entry.lane, lane)
      this.#lanesChanged()
    }
    const list = lane.lists[entry.priority] as LinkedList<Entry>
    // Nearly everybody is the newest. A retry, or one put back, belongs further ahead.
    let previous = list.last
    if (previous !== undefined && isBefore(entry, previous)) {
      previous = placeFromFront(list, entry)
    }
    list.insertAfter(previous, entry)
    lane.length++
    this.length++
  }

  #unlink(entry: Entry): void {
    const lane = this.#known(entry.lane) as Lane
    ;(lane.lists[entry.priority] as LinkedList<Entry>).remove(entry)
    this.length--
    // A lane that nobody waits in any more is forgotten: names may be many.
    if (--lane.length > 0) return
    this.#lanes.delete(entry.lane)
    this.#lastLane = undefined
    this.#lanesChanged()
  }

  #known(lane: string): Lane | undefined {
    if (this.#lastLane?.name === lane) return this.#lastLane
    const known = this.#lanes.get(lane)
    if (known !== undefined) this.#lastLane = known
    return known
  }

  #lanesChanged(): void {
    this.onlyLane = this.#lanes.size === 1 ? this.#lanes.keys().next().value : undefined
  }

  /** The oldest of each list is its best; while the queue stands, the newest. */
  #next({ lists, codel }: Lane, nowMs: number): Entry | undefined {
    const { standing } = codel
    let best: Entry | undefined
    for (const list of lists) {
      const entry = standing ? list.last : list.first
      if (entry === undefined) continue
      if (best === undefined || this.#goesBefore(entry, best, nowMs)) best = entry
    }
    return best
  }

  /** Where age has made up for priority, it is age that counts. */
  #goesBefore(one: Entry, other: Entry, nowMs: number): boolean {
    const byRank = this.#rank(one, nowMs) - this.#rank(other, nowMs)
    return byRank === 0 ? isBefore(one, other) : byRank < 0
  }

  /** Lower is sooner. Age makes up for a lack of priority, in whole steps. */
  #rank(entry: Entry, nowMs: number): number {
    return entry.priority - Math.floor((nowMs - entry.arrivedMs) / this.#options.agingMs)
  }

  #control(lane: Lane, nowMs: number): void {
    const { codel } = lane
    codel.look(nowMs, oldestWaitMs(lane, nowMs))
    // One for each that is served, at most: slots come free in waves, and what was due to go between
    // two of them must not take those along who are served in the next.
    if (!codel.standing || !codel.drop(nowMs)) return
    const entry = leastImportantOldest(lane)
    if (entry === undefined) return
    this.dismiss(entry, 'overload')
    codel.look(nowMs, oldestWaitMs(lane, nowMs))
  }

  /** The least important, newest entry, if it is less important than this. */
  #leastBelow(importance: number): Entry | undefined {
    for (let priority = PRIORITIES.length - 1; priority > importance; priority--) {
      let newest: Entry | undefined
      for (const { lists } of this.#lanes.values()) {
        const last = lists[priority]?.last
        if (last !== undefined && (newest === undefined || last.arrivedMs > newest.arrivedMs)) {
          newest = last
        }
      }
      if (newest !== undefined) return newest
    }
    return undefined
  }
}

/** Many may come in the same moment. */
function isBefore(one: Entry, other: Entry): boolean {
  if (one.arrivedMs !== other.arrivedMs) return one.arrivedMs < other.arrivedMs
  return one.order < other.order
}

function placeFromFront(list: LinkedList<Entry>, entry: Entry): Entry | undefined {
  let previous: Entry | undefined
  let each = list.first
  while (each !== undefined && isBefore(each, entry)) {
    previous = each
    each = each.after
  }
  return previous
}

/** Not counting what was known in advance; below zero, if nobody waits. */
function oldestWaitMs({ lists, excusedMs }: Lane, nowMs: number): number {
  let oldestMs = Number.POSITIVE_INFINITY
  for (const { first } of lists) {
    if (first !== undefined && first.enteredMs < oldestMs) oldestMs = first.enteredMs
  }
  return nowMs - Math.max(oldestMs, excusedMs)
}

function leastImportantOldest({ lists }: Lane): Entry | undefined {
  for (let priority = PRIORITIES.length - 1; priority > 0; priority--) {
    const first = lists[priority]?.first
    if (first !== undefined) return first
  }
  return undefined
}
