/**
 * Entries in the order of their turns, in a ring of places. First and last come and go in constant
 * time; who leaves from the middle is left standing there as one that has gone until it comes to an
 * end, or until those who have gone are more than those who wait. An entry costs one place and knows
 * nothing of its neighbours, which in a linked list would be two more fields of each, to be copied along.
 */
import { type Entry, isBefore } from './entry.js'

type Places = (Entry | undefined)[]

const FIRST_PLACES = 8
/** Nobody tidies up for fewer. */
const FEW_GONE = 32
const MOST_IDLE_PLACES = 1_024
const NO_PLACES: Places = []

export class EntryLine {
  /** As many as a power of two, or none. */
  #places = NO_PLACES
  /** Where the first one stands; the others stand behind it, and neither end has gone. */
  #head = 0
  /** Places from the first to the last. */
  #taken = 0
  /** Entries that have not gone. */
  length = 0

  get first(): Entry | undefined {
    return this.#taken === 0 ? undefined : this.#places[this.#head]
  }

  get last(): Entry | undefined {
    return this.#taken === 0 ? undefined : this.#at(this.#taken - 1)
  }

  push(entry: Entry): void {
    if (this.#taken === this.#places.length) this.#grow()
    this.#places[this.#place(this.#taken++)] = entry
    this.length++
  }

  /** By its turn. Nearly everybody is the last one; a retry, or one put back, belongs further ahead. */
  insert(entry: Entry): void {
    const { last } = this
    if (last === undefined || !isBefore(entry, last)) return this.push(entry)
    if (this.#taken === this.#places.length) this.#grow()
    this.#head = this.#place(-1)
    this.#taken++
    this.length++
    let index = 0
    for (; index < this.#taken - 1; index++) {
      const each = this.#at(index + 1) as Entry
      if (!isBefore(each, entry)) break
      this.#places[this.#place(index)] = each
    }
    this.#places[this.#place(index)] = entry
  }

  /** From the first to the last one, with those between them who have gone. */
  get places(): number {
    return this.#taken
  }

  /** Takes out the first or the last one. */
  take(entry: Entry): void {
    const index = entry === this.first ? 0 : this.#taken - 1
    this.#places[this.#place(index)] = undefined
    if (index === 0) this.#head = this.#place(1)
    this.#taken--
    this.length--
    this.#trim()
  }

  /** One of its entries has gone, wherever it stands. */
  forget(): void {
    this.length--
    this.#trim()
    if (this.#taken > 2 * this.length + FEW_GONE) this.#tidy()
  }

  /** Everybody who waits. Whoever comes meanwhile may be missed. */
  list(): Entry[] {
    const all: Entry[] = []
    for (let index = 0; index < this.#taken; index++) {
      const entry = this.#at(index) as Entry
      if (entry.state !== 'gone') all.push(entry)
    }
    return all
  }

  /** Counted from the first. */
  #place(index: number): number {
    return (this.#head + index) & (this.#places.length - 1)
  }

  #at(index: number): Entry | undefined {
    return this.#places[this.#place(index)]
  }

  /** Neither end has gone. */
  #trim(): void {
    while (this.#taken > 0 && this.first?.state === 'gone') {
      this.#places[this.#head] = undefined
      this.#head = this.#place(1)
      this.#taken--
    }
    while (this.#taken > 0 && this.last?.state === 'gone') {
      this.#places[this.#place(--this.#taken)] = undefined
    }
    // What a crowd has left behind.
    if (this.#taken === 0 && this.#places.length > MOST_IDLE_PLACES) this.#places = NO_PLACES
  }

  /** Without those who have gone. */
  #tidy(): void {
    const stay = this.list()
    this.#places.fill(undefined)
    this.#head = 0
    this.#taken = stay.length
    for (let index = 0; index < stay.length; index++) this.#places[index] = stay[index]
  }

  /** Looks at nobody: with very many, each look is a miss of the processor's cache. */
  #grow(): void {
    const next: Places = new Array(Math.max(FIRST_PLACES, this.#places.length * 2))
    for (let index = 0; index < this.#taken; index++) next[index] = this.#at(index)
    next.fill(undefined, this.#taken)
    this.#places = next
    this.#head = 0
  }
}
