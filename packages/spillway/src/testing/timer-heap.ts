/**
 * An item of the heap, ordered by time and then by arming. It knows its index, so it can be
 * removed.
 */
export interface HeapItem {
  /** Must not change while it is in the heap. */
  readonly dueMs: number
  readonly order: number
  /** Index in the heap, or -1. */
  index: number
}

/**
 * A binary heap with removal from the middle: most timers are cancelled long before they are due.
 */
export class TimerHeap<T extends HeapItem> {
  readonly #items: T[] = []
  /**
   * Copies of the due times. V8 would box each number that is read from items of several classes.
   */
  readonly #dueMs: number[] = []

  get first(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    this.#up(item, item.dueMs, this.#items.length)
  }

  /** The item has to be in this heap. */
  remove(item: T): void {
    const index = item.index
    item.index = -1
    const last = this.#items.pop() as T
    const lastMs = this.#dueMs.pop() as number
    if (last === item) return
    this.#up(last, lastMs, index)
    this.#down(last, lastMs, last.index)
  }

  #up(item: T, dueMs: number, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#items[parentIndex] as T
      const parentMs = this.#dueMs[parentIndex] as number
      if (parentMs < dueMs || (parentMs === dueMs && parent.order < item.order)) break
      this.#put(parent, parentMs, index)
      index = parentIndex
    }
    this.#put(item, dueMs, index)
  }

  #down(item: T, dueMs: number, from: number): void {
    const { length } = this.#items
    let index = from
    for (;;) {
      let childIndex = 2 * index + 1
      if (childIndex >= length) break
      if (childIndex + 1 < length && this.#isBefore(childIndex + 1, childIndex)) childIndex++
      const child = this.#items[childIndex] as T
      const childMs = this.#dueMs[childIndex] as number
      if (dueMs < childMs || (dueMs === childMs && item.order < child.order)) break
      this.#put(child, childMs, index)
      index = childIndex
    }
    this.#put(item, dueMs, index)
  }

  #isBefore(one: number, other: number): boolean {
    const oneMs = this.#dueMs[one] as number
    const otherMs = this.#dueMs[other] as number
    if (oneMs !== otherMs) return oneMs < otherMs
    return (this.#items[one] as T).order < (this.#items[other] as T).order
  }

  #put(item: T, dueMs: number, index: number): void {
    this.#items[index] = item
    this.#dueMs[index] = dueMs
    item.index = index
  }
}
