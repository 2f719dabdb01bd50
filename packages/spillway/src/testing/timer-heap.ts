/** What a heap keeps: ordered by time, then by arming; knows its place, so it can be taken out. */
export interface HeapItem {
  readonly dueMs: number
  readonly order: number
  /** Place in the heap, or -1. */
  index: number
}

/** A binary heap with removal from the middle: most timers are cancelled long before they are due. */
export class TimerHeap<T extends HeapItem> {
  readonly #items: T[] = []

  get first(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    this.#items.push(item)
    this.#up(item, this.#items.length - 1)
  }

  /** The item has to be in this heap. */
  remove(item: T): void {
    const index = item.index
    item.index = -1
    const last = this.#items.pop() as T
    if (last === item) return
    this.#up(last, index)
    this.#down(last, last.index)
  }

  #up(item: T, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#items[parentIndex] as T
      if (!before(item, parent)) break
      this.#put(parent, index)
      index = parentIndex
    }
    this.#put(item, index)
  }

  #down(item: T, from: number): void {
    let index = from
    for (;;) {
      const left = this.#items[2 * index + 1]
      const right = this.#items[2 * index + 2]
      const child = right !== undefined && before(right, left as T) ? right : left
      if (child === undefined || !before(child, item)) break
      const childIndex = child.index
      this.#put(child, index)
      index = childIndex
    }
    this.#put(item, index)
  }

  #put(item: T, index: number): void {
    this.#items[index] = item
    item.index = index
  }
}

function before(one: HeapItem, other: HeapItem): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order)
}
