/** Token buckets of a million users: one number each, forgotten once it is full again. */
import type { Buckets } from '../levels/check-levels.js'

export class MemoryBuckets implements Buckets {
  /** The time of whoever asks now. */
  nowUs = 0
  readonly #fullAtUs = new Map<string, number>()
  /** Looked through for full ones each time the map has doubled. */
  #sweepAt = 1_024

  get(key: string): number | undefined {
    const fullAtUs = this.#fullAtUs.get(key)
    return fullAtUs !== undefined && fullAtUs > this.nowUs ? fullAtUs : undefined
  }

  set(key: string, fullAtUs: number): void {
    this.#fullAtUs.set(key, fullAtUs)
    if (this.#fullAtUs.size >= this.#sweepAt) this.#sweep()
  }

  #sweep(): void {
    for (const [key, fullAtUs] of this.#fullAtUs) {
      if (fullAtUs <= this.nowUs) this.#fullAtUs.delete(key)
    }
    this.#sweepAt = Math.max(1_024, this.#fullAtUs.size * 2)
  }
}
