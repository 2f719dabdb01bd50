/**
 * User limits in one process: the transitions on the levels of up to a million users. A token bucket is one number,
 * removed once the bucket is full again; a sliding window is a log of charges, removed once all have left it.
 */
import type { Microseconds } from '../../core/time/clock.js'
import { type Buckets, checkLevels } from '../levels/check-levels.js'
import { refundLevels } from '../levels/refund-levels.js'
import type { ChargeLog } from '../levels/sliding-window.js'
import type { LevelStore } from '../port.js'
import { ExpiringMap } from './expiring-map.js'

const FEWEST = 1_024

export function createMemoryLevels(nowUs: Microseconds): LevelStore {
  const buckets = new MemoryBuckets()
  const stored = new ExpiringMap<ChargeLog>()
  const logs = {
    get: (key: string) => stored.get(key, buckets.nowUs),
    set: (key: string, log: ChargeLog, untilUs: number) =>
      stored.set(key, log, buckets.nowUs, untilUs),
  }
  return {
    check(requests, atMs) {
      buckets.nowUs = nowUs(atMs)
      return checkLevels(buckets, requests, buckets.nowUs, logs)
    },
    refund(requests) {
      buckets.nowUs = nowUs()
      refundLevels(buckets, requests, buckets.nowUs, logs)
    },
  }
}

/**
 * The numbers are in an array and the map holds indexes. As values of the map, V8 would allocate a
 * new heap number for each change.
 */
export class MemoryBuckets implements Buckets {
  /** Time of the current operation. */
  nowUs = 0
  #places = new Map<string, number>()
  #fullAtUs = new Float64Array(FEWEST)
  /** `set` follows a `get` of the same key. */
  #lastKey: string | undefined
  #lastPlace: number | undefined

  get(key: string): number | undefined {
    const place = this.#places.get(key)
    this.#lastKey = key
    this.#lastPlace = place
    if (place === undefined) return undefined
    const fullAtUs = this.#fullAtUs[place] as number
    return fullAtUs > this.nowUs ? fullAtUs : undefined
  }

  set(key: string, fullAtUs: number): void {
    const known = key === this.#lastKey ? this.#lastPlace : this.#places.get(key)
    // Before the array is read: adding a bucket may replace it.
    const place = known ?? this.#add(key)
    this.#fullAtUs[place] = fullAtUs
  }

  #add(key: string): number {
    if (this.#places.size === this.#fullAtUs.length) this.#sweep()
    const place = this.#places.size
    this.#places.set(key, place)
    this.#lastKey = undefined
    return place
  }

  /**
   * Removes full buckets each time the array is full, and makes room for twice as many as are left.
   */
  #sweep(): void {
    const left = [...this.#places].filter(([, at]) => (this.#fullAtUs[at] as number) > this.nowUs)
    const fullAtUs = new Float64Array(Math.max(FEWEST, 2 * left.length))
    for (const [index, [, place]] of left.entries()) {
      fullAtUs[index] = this.#fullAtUs[place] as number
    }
    this.#places = new Map(left.map(([key], index) => [key, index]))
    this.#fullAtUs = fullAtUs
  }
}
