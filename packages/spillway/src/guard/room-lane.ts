/** One lane's part of the room: a line for each priority, oldest first. */
import { PRIORITIES } from '../core/options/priority.js'
import { CoDel } from './codel.js'
import { type Entry, isBefore } from './entry.js'
import { EntryLine } from './entry-line.js'

export class RoomLane {
  readonly name: string
  readonly lines = PRIORITIES.map(() => new EntryLine())
  length = 0
  readonly codel: CoDel
  readonly #agingMs: number
  /** Until then it waited for a time that was known: nobody's fault. */
  #excusedMs = Number.NEGATIVE_INFINITY

  constructor(name: string, targetMs: number, agingMs: number) {
    this.name = name
    this.codel = new CoDel(targetMs)
    this.#agingMs = agingMs
  }

  insert(entry: Entry): void {
    this.#line(entry).insert(entry)
    this.length++
  }

  /** Takes out the next in turn. */
  take(entry: Entry): void {
    this.#line(entry).take(entry)
    this.length--
  }

  /** One of its entries has gone. */
  forget(entry: Entry): void {
    this.#line(entry).forget()
    this.length--
  }

  excuse(untilMs: number): void {
    this.#excusedMs = Math.max(this.#excusedMs, untilMs)
  }

  /** Everybody, the next in turn of each priority first. */
  waiting(): Entry[] {
    return this.lines.flatMap((line) => line.list())
  }

  /** The oldest of each line is its best; while the queue stands, the newest. */
  next(nowMs: number): Entry | undefined {
    const { standing } = this.codel
    let best: Entry | undefined
    for (const line of this.lines) {
      if (line.length === 0) continue
      const entry = (standing ? line.last : line.first) as Entry
      if (best === undefined || this.#goesBefore(entry, best, nowMs)) best = entry
    }
    return best
  }

  /** Lower is sooner. Age makes up for a lack of priority, in whole steps. */
  rank(entry: Entry, nowMs: number): number {
    return entry.priority - Math.floor((nowMs - entry.arrivedMs) / this.#agingMs)
  }

  /** Not counting what was known in advance; below zero, if nobody waits. */
  oldestWaitMs(nowMs: number): number {
    let oldestMs = Number.POSITIVE_INFINITY
    for (const line of this.lines) {
      if (line.length === 0) continue
      const { enteredMs } = line.first as Entry
      if (enteredMs < oldestMs) oldestMs = enteredMs
    }
    return nowMs - Math.max(oldestMs, this.#excusedMs)
  }

  /** Whom to let go, because the queue stands. Never somebody critical. */
  get leastImportantOldest(): Entry | undefined {
    for (let priority = PRIORITIES.length - 1; priority > 0; priority--) {
      const first = this.lines[priority]?.first
      if (first !== undefined) return first
    }
    return undefined
  }

  #line({ priority }: Entry): EntryLine {
    return this.lines[priority] as EntryLine
  }

  /** Where age has made up for priority, it is age that counts. */
  #goesBefore(one: Entry, other: Entry, nowMs: number): boolean {
    const byRank = this.rank(one, nowMs) - this.rank(other, nowMs)
    return byRank === 0 ? isBefore(one, other) : byRank < 0
  }
}
