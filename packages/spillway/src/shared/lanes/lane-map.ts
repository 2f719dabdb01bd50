/** State by lane, for lanes of a registry: it is dropped when the registry drops its lane. */
import type { LaneHolder, LaneRegistry } from './lane-registry.js'

export interface LaneMapOptions<T> {
  create(lane: string): T
  /** Whether nothing is lost if this is dropped. Default: always. */
  isIdle?(value: T, unusedMs: number): boolean
}

export class LaneMap<T> implements LaneHolder {
  readonly #registry: LaneRegistry
  readonly #options: LaneMapOptions<T>
  readonly #values = new Map<string, T>()
  /** Consecutive calls mostly use the same lane. */
  #lastLane: string | undefined
  #last: T | undefined

  constructor(registry: LaneRegistry, options: LaneMapOptions<T>) {
    this.#registry = registry
    this.#options = options
    registry.attach(this)
  }

  get size(): number {
    return this.#values.size
  }

  /** Creates nothing. */
  get(lane: string): T | undefined {
    if (lane === this.#lastLane) return this.#last
    const known = this.#values.get(lane)
    if (known === undefined) return undefined
    this.#lastLane = lane
    this.#last = known
    return known
  }

  /** For a call of this lane, or for state that has to be remembered. */
  of(lane: string): T {
    const known = this.get(lane)
    if (known !== undefined) return known
    this.#registry.add(lane)
    const value = this.#options.create(lane)
    this.#values.set(lane, value)
    return value
  }

  lanes(): Iterable<string> {
    return this.#values.keys()
  }

  values(): Iterable<T> {
    return this.#values.values()
  }

  [Symbol.iterator](): Iterator<[string, T]> {
    return this.#values.entries()
  }

  isIdle(lane: string, unusedMs: number): boolean {
    const value = this.#values.get(lane)
    return value === undefined || (this.#options.isIdle?.(value, unusedMs) ?? true)
  }

  drop(lane: string): void {
    this.#values.delete(lane)
    if (this.#lastLane === lane) this.#lastLane = undefined
  }

  /** Its owner was closed, so it no longer keeps lanes from being dropped. */
  close(): void {
    this.#registry.detach(this)
  }
}
