/**
 * Entries in the order of their turns, in blocks of places. First and last come and go in constant
 * time; who leaves from the middle is left standing there as one that has gone until it comes to an
 * end, or until those who have gone are more than those who wait. An entry costs one place and knows
 * nothing of its neighbours, which in a linked list would be two more fields of each, to be copied along.
 * Blocks, because one array would have to be copied to grow, and be large for a crowd that has left.
 */
import { type Entry, isBefore } from './entry.js'

type Block = (Entry | undefined)[]

const BLOCK_BITS = 6
const BLOCK_SIZE = 1 << BLOCK_BITS
const LAST_PLACE = BLOCK_SIZE - 1
/** Nobody tidies up for fewer. */
const FEW_GONE = 32

export class EntryLine {
  /** Those in use, and one at most that no longer is or not yet. */
  #blocks: Block[] = []
  /** Where the first one stands, in the first block; the others stand behind it, and neither end has gone. */
  #head = 0
  /** Places from the first to the last. */
  #taken = 0
  /** Entries that have not gone. */
  length = 0

  get first(): Entry | undefined {
    return this.#taken === 0 ? undefined : this.#at(0)
  }

  get last(): Entry | undefined {
    return this.#taken === 0 ? undefined : this.#at(this.#taken - 1)
  }

  push(entry: Entry): void {
    const end = this.#head + this.#taken
    if (end === this.#blocks.length << BLOCK_BITS) this.#blocks.push(createBlock())
    this.#put(this.#taken++, entry)
    this.length++
  }

  /** By its turn. Nearly everybody is the last one; a retry, or one put back, belongs further ahead. */
  insert(entry: Entry): void {
    const { last } = this
    if (last === undefined || !isBefore(entry, last)) return this.push(entry)
    if (this.#head === 0) {
      this.#blocks.unshift(createBlock())
      this.#head = BLOCK_SIZE
    }
    this.#head--
    this.#taken++
    this.length++
    let index = 0
    for (; index < this.#taken - 1; index++) {
      const each = this.#at(index + 1) as Entry
      if (!isBefore(each, entry)) break
      this.#put(index, each)
    }
    this.#put(index, entry)
  }

  /** From the first to the last one, with those between them who have gone. */
  get places(): number {
    return this.#taken
  }

  /** Takes out the first or the last one. */
  take(entry: Entry): void {
    if (entry === this.first) this.#dropFirst()
    else this.#dropLast()
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
  #at(index: number): Entry | undefined {
    const place = this.#head + index
    return (this.#blocks[place >> BLOCK_BITS] as Block)[place & LAST_PLACE]
  }

  #put(index: number, entry: Entry | undefined): void {
    const place = this.#head + index
    ;(this.#blocks[place >> BLOCK_BITS] as Block)[place & LAST_PLACE] = entry
  }

  #dropFirst(): void {
    this.#put(0, undefined)
    this.#taken--
    if (++this.#head < BLOCK_SIZE) return
    this.#head = 0
    // The only one is used again: who waits a moment is followed by others.
    if (this.#blocks.length > 1) this.#blocks.shift()
  }

  #dropLast(): void {
    this.#put(--this.#taken, undefined)
    const unused = this.#blocks.length - ((this.#head + this.#taken) >> BLOCK_BITS)
    if (unused > 1) this.#blocks.pop()
  }

  /** Neither end has gone. */
  #trim(): void {
    while (this.#taken > 0 && this.#at(0)?.state === 'gone') this.#dropFirst()
    while (this.#taken > 0 && this.#at(this.#taken - 1)?.state === 'gone') this.#dropLast()
  }

  /** Without those who have gone. */
  #tidy(): void {
    const stay = this.list()
    this.#blocks = []
    this.#head = 0
    this.#taken = 0
    this.length = 0
    for (const entry of stay) this.push(entry)
  }
}

function createBlock(): Block {
  return new Array(BLOCK_SIZE).fill(undefined)
}
