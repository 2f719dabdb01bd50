/** A first-in, first-out ring buffer that grows when it is full. */
export class Ring<T> {
  length = 0
  #items: (T | undefined)[]
  #head = 0

  /** `capacity` is a power of two. */
  constructor(capacity = 16) {
    this.#items = new Array(capacity)
  }

  push(item: T): void {
    if (this.length === this.#items.length) this.#grow()
    this.#items[(this.#head + this.length) & (this.#items.length - 1)] = item
    this.length++
  }

  /** The ring must not be empty. */
  shift(): T {
    const item = this.#items[this.#head] as T
    // Drops the reference, so that the item can be collected.
    this.#items[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#items.length - 1)
    this.length--
    return item
  }

  /** Removes an item from the middle. */
  remove(item: T): void {
    const kept: T[] = []
    while (this.length > 0) {
      const each = this.shift()
      if (each !== item) kept.push(each)
    }
    for (const each of kept) this.push(each)
  }

  #grow(): void {
    const items = this.#items
    const larger: (T | undefined)[] = new Array(items.length * 2)
    for (let index = 0; index < this.length; index++) {
      larger[index] = items[(this.#head + index) & (items.length - 1)]
    }
    this.#items = larger
    this.#head = 0
  }
}
