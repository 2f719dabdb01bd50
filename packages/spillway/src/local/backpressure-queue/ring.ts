/** First in, first out, in an array that grows to what was once needed and is used in circles. */
export class Ring<T> {
  length = 0
  #items: (T | undefined)[]
  #head = 0

  /** `capacity`: a power of two. */
  constructor(capacity = 16) {
    this.#items = new Array(capacity)
  }

  push(item: T): void {
    if (this.length === this.#items.length) this.#grow()
    this.#items[(this.#head + this.length) & (this.#items.length - 1)] = item
    this.length++
  }

  /** Only when there is one. */
  shift(): T {
    const item = this.#items[this.#head] as T
    // Nothing is kept that was given away.
    this.#items[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#items.length - 1)
    this.length--
    return item
  }

  /** Takes one out of the middle. */
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
