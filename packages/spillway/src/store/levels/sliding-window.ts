/**
 * A user limit as an exact sliding window: never more than `limit` units in any window. The state is a log of charges,
 * oldest first: the time and the units of each, alternating. With a limit of at most `MOST_CHARGES`, every charge has
 * an entry of its own. With a larger limit, charges within the same part of the window share the time of the last of
 * them, so units may count for up to a sixtieth of the window too long, and the log stays short.
 * Twin: `redis/lua/include/level-window.lua`.
 */
import { SET_BACK_US } from '../clock-setback.js'
import type { LevelCharge } from '../port.js'

/** Time in microseconds and units, alternating. */
export type ChargeLog = readonly number[]

/** Where the logs are kept, by key. */
export interface ChargeLogs {
  get(key: string): ChargeLog | undefined
  /** The log matters until `untilUs`. */
  set(key: string, log: ChargeLog, untilUs: number): void
}

const MOST_CHARGES = 60

/** The window of one level at one moment. The stored state changes only when the log is saved. */
export class LevelWindow {
  readonly log: number[] = []
  /** The clock was set back, so the charges count as made now. This has to be saved: it depends on the time. */
  readonly rebased: boolean
  readonly #level: LevelCharge
  readonly #nowUs: number
  /** Now, or the time of the newest charge while the clock is slightly behind it. */
  readonly #timeUs: number
  #units = 0

  constructor(level: LevelCharge, stored: ChargeLog | undefined, nowUs: number) {
    this.#level = level
    this.#nowUs = nowUs
    const newestUs = stored?.at(-2) ?? 0
    this.rebased = newestUs - nowUs > SET_BACK_US
    this.#timeUs = this.rebased ? nowUs : Math.max(nowUs, newestUs)
    for (let index = 0; stored !== undefined && index < stored.length; index += 2) {
      const atUs = Math.min(stored[index] as number, this.#timeUs)
      if (atUs + level.windowUs <= this.#timeUs) continue
      const units = stored[index + 1] as number
      this.log.push(atUs, units)
      this.#units += units
    }
  }

  get remaining(): number {
    return Math.max(0, this.#level.limit - this.#units)
  }

  /** How long until everything has left the window. */
  get resetUs(): number {
    const newestUs = this.log.at(-2)
    return newestUs === undefined ? 0 : newestUs + this.#level.windowUs - this.#nowUs
  }

  /** How long until the cost fits; 0 if it does now. */
  waitUs(cost: number): number {
    const { limit, windowUs } = this.#level
    let missing = this.#units + Math.min(cost, limit) - limit
    if (missing <= 0) return 0
    for (let index = 0; index < this.log.length; index += 2) {
      missing -= this.log[index + 1] as number
      if (missing <= 0) return (this.log[index] as number) + windowUs - this.#nowUs
    }
    return windowUs
  }

  charge(cost: number): void {
    const units = Math.min(cost, this.#level.limit)
    const last = this.log.length - 2
    this.#units += units
    if (last >= 0 && this.#part(this.log[last] as number) === this.#part(this.#timeUs)) {
      this.log[last] = this.#timeUs
      ;(this.log[last + 1] as number) += units
    } else {
      this.log.push(this.#timeUs, units)
    }
  }

  /**
   * Returns units that were charged at `atUs`, if they still count. Units not found there are taken from earlier
   * charges; then later charges count for too long, never too short.
   */
  refund(cost: number, atUs: number): void {
    let left = Math.min(cost, this.#level.limit)
    for (let index = this.log.length - 2; index >= 0 && left > 0; index -= 2) {
      if (this.#part(this.log[index] as number) > this.#part(atUs)) continue
      const back = Math.min(left, this.log[index + 1] as number)
      ;(this.log[index + 1] as number) -= back
      this.#units -= back
      left -= back
      if (this.log[index + 1] === 0) this.log.splice(index, 2)
    }
  }

  save(logs: ChargeLogs): void {
    logs.set(this.#level.key, this.log, this.#nowUs + this.resetUs)
  }

  /** The part of the window that a time belongs to: charges of one part share an entry. */
  #part(atUs: number): number {
    const { limit, windowUs } = this.#level
    return limit <= MOST_CHARGES ? atUs : Math.floor(atUs / Math.ceil(windowUs / MOST_CHARGES))
  }
}
