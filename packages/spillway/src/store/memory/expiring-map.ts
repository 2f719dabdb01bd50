/** A map whose entries expire, so that users who never return do not take memory forever. */
export class ExpiringMap<T> {
  readonly #entries = new Map<string, { value: T; untilUs: number }>()
  /** Expired entries are removed each time the map has doubled. */
  #sweepAt = 1_024

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowUs: number): T | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.untilUs > nowUs ? entry.value : undefined
  }

  set(key: string, value: T, nowUs: number, untilUs: number): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      entry.value = value
      entry.untilUs = untilUs
      return
    }
    this.#entries.set(key, { value, untilUs })
    if (this.#entries.size >= this.#sweepAt) this.#sweep(nowUs)
  }

  /** Like `set`, but never shortens the life of an existing entry. */
  prolong(key: string, value: T, nowUs: number, untilUs: number): void {
    this.set(key, value, nowUs, Math.max(untilUs, this.#entries.get(key)?.untilUs ?? 0))
  }

  #sweep(nowUs: number): void {
    for (const [key, { untilUs }] of this.#entries) {
      if (untilUs <= nowUs) this.#entries.delete(key)
    }
    this.#sweepAt = Math.max(1_024, this.#entries.size * 2)
  }
}
