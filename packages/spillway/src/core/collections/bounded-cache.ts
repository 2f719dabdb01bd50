/**
 * A map for results that can be computed again. It is emptied when it is full, which costs less than
 * tracking the use of each entry.
 */
export class BoundedCache<K, V> extends Map<K, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#most && !this.has(key)) this.clear()
    return super.set(key, value)
  }
}
