/** A resource that several configurations share, such as a vendor's connections. The last release closes it. */
export class RefCounted<T> {
  readonly value: T
  readonly #close: (value: T) => Promise<void>
  #holders = 1

  constructor(value: T, close: (value: T) => Promise<void>) {
    this.value = value
    this.#close = close
  }

  retain(): this {
    this.#holders++
    return this
  }

  async release(): Promise<void> {
    if (--this.#holders === 0) await this.#close(this.value)
  }
}
