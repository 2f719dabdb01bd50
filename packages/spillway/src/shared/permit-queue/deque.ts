/**
 * Queued calls in order, in blocks of 64. Calls at either end come and go in constant time. A call that leaves
 * from the middle keeps its place, marked as gone, until it reaches an end or until more places are gone than
 * in use; then the deque is rebuilt. Compared with a linked list, a call needs no pointers to its neighbours,
 * which the garbage collector would have to copy. Compared with one array, growing copies nothing.
 */
import { isBefore, type QueuedCall } from './queued-call.js'

type Block = (QueuedCall | undefined)[]

const BLOCK_BITS = 6
const BLOCK_SIZE = 1 << BLOCK_BITS
const BLOCK_MASK = BLOCK_SIZE - 1
/** A rebuild needs at least this many removed entries. */
const MIN_REMOVED = 32

export class CallDeque {
  /** Blocks in use, and at most one spare. */
  #blocks: Block[] = []
  /** Index of the first entry in the first block. Neither the first nor the last entry is removed. */
  #head = 0
  #places = 0
  /** Calls that are not removed. */
  length = 0

  get first(): QueuedCall | undefined {
    return this.#places === 0 ? undefined : this.#at(0)
  }

  get last(): QueuedCall | undefined {
    return this.#places === 0 ? undefined : this.#at(this.#places - 1)
  }

  /** Entries from the first to the last call, including removed ones. */
  get places(): number {
    return this.#places
  }

  push(call: QueuedCall): void {
    const end = this.#head + this.#places
    if (end === this.#blocks.length << BLOCK_BITS) this.#blocks.push(createBlock())
    this.#put(this.#places++, call)
    this.length++
  }

  /** Inserts in order. Nearly every call belongs at the end; a retry, or one put back, further ahead. */
  insert(call: QueuedCall): void {
    const { last } = this
    if (last === undefined || !isBefore(call, last)) return this.push(call)
    if (this.#head === 0) {
      this.#blocks.unshift(createBlock())
      this.#head = BLOCK_SIZE
    }
    this.#head--
    this.#places++
    this.length++
    let index = 0
    for (; index < this.#places - 1; index++) {
      const each = this.#at(index + 1) as QueuedCall
      if (!isBefore(each, call)) break
      this.#put(index, each)
    }
    this.#put(index, call)
  }

  /** Removes the first or the last call. */
  take(call: QueuedCall): void {
    if (call === this.first) this.#dropFirst()
    else this.#dropLast()
    this.length--
    this.#trim()
  }

  /** A call was removed, at any position. */
  forget(): void {
    this.length--
    this.#trim()
    if (this.#places > 2 * this.length + MIN_REMOVED) this.#rebuild()
  }

  /** A copy, in order, without removed calls. */
  list(): QueuedCall[] {
    const calls: QueuedCall[] = []
    for (let index = 0; index < this.#places; index++) {
      const call = this.#at(index) as QueuedCall
      if (call.state !== 'gone') calls.push(call)
    }
    return calls
  }

  #at(index: number): QueuedCall | undefined {
    const place = this.#head + index
    return (this.#blocks[place >> BLOCK_BITS] as Block)[place & BLOCK_MASK]
  }

  #put(index: number, call: QueuedCall | undefined): void {
    const place = this.#head + index
    ;(this.#blocks[place >> BLOCK_BITS] as Block)[place & BLOCK_MASK] = call
  }

  #dropFirst(): void {
    this.#put(0, undefined)
    this.#places--
    if (++this.#head < BLOCK_SIZE) return
    this.#head = 0
    // The only block is reused: short queues fill and empty all the time.
    if (this.#blocks.length > 1) this.#blocks.shift()
  }

  #dropLast(): void {
    this.#put(--this.#places, undefined)
    const unused = this.#blocks.length - ((this.#head + this.#places) >> BLOCK_BITS)
    if (unused > 1) this.#blocks.pop()
  }

  #trim(): void {
    while (this.#places > 0 && this.#at(0)?.state === 'gone') this.#dropFirst()
    while (this.#places > 0 && this.#at(this.#places - 1)?.state === 'gone') this.#dropLast()
  }

  #rebuild(): void {
    const calls = this.list()
    this.#blocks = []
    this.#head = 0
    this.#places = 0
    this.length = 0
    for (const call of calls) this.push(call)
  }
}

function createBlock(): Block {
  return new Array(BLOCK_SIZE).fill(undefined)
}
