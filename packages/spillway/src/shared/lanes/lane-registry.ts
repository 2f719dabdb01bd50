/**
 * The lanes of one guard, at most `maxLanes` of them. Lane names often come from callers (a model, for
 * example), so without a cap they would become unbounded state.
 *
 * Each call resolves its lane name here, once per attempt. Everything that keeps state by lane does so in a
 * `LaneMap` (or is attached as a `LaneHolder`), so all of it is dropped together with its lane.
 */
import { emit, listening } from '../../core/events.js'
import { integer, optional } from '../../core/options/checks.js'
import { type Clock, turnMs } from '../../core/time/clock.js'
import { ALL_LANES, DEFAULT_LANE, OTHER_LANE } from './lane-names.js'

/** A holder of state by lane. */
export interface LaneHolder {
  /**
   * Whether nothing is lost if the lane's state is dropped. `unusedMs`: the time since a call last used the
   * lane.
   */
  isIdle(lane: string, unusedMs: number): boolean
  drop(lane: string): void
}

export interface LaneRegistryOptions {
  /** Name of the guard, for the event. */
  name: string
  clock: Clock
  maxLanes?: number | undefined
  /** Lanes that the options name: they always exist and are never dropped. */
  named?: Iterable<string> | undefined
}

/** Lanes that calls share whose own lane does not exist, besides `(other)`. */
export interface OverflowLanes {
  readonly overflowLanes: readonly string[]
  /** Undefined: `(other)`. */
  overflowOf(name: string): string | undefined
}

interface LaneUse {
  /** Slots of this pod that attempts of this lane hold. */
  slots: number
  /** When a call last used it. */
  usedMs: number
  /** When a sweep last found it not idle. */
  busyMs: number
}

const DEFAULT_MAX_LANES = 1_000

/** The option, for everything that has lanes. */
export const readMaxLanes = optional(integer({ min: 1 }), DEFAULT_MAX_LANES)

/** An idle lane is dropped after this time even if there is room for it. */
export const LANE_REST_MS = 300_000

/** After this time without a call that had to share `(other)`, the next one is reported again. */
const REPORT_AGAIN_MS = 60_000

export class LaneRegistry {
  readonly name: string
  readonly #clock: Clock
  #maxLanes: number
  #named: ReadonlySet<string>
  /** Lanes of job queues: they stay for as long as the guard does. */
  readonly #kept = new Set<string>()
  #overflow: OverflowLanes | undefined
  #overflowLanes: ReadonlySet<string> = new Set([OTHER_LANE])
  /** Least recently used first. */
  readonly #lanes = new Map<string, LaneUse>()
  readonly #holders = new Set<LaneHolder>()
  /** The last call with a new lane name did not get a lane. */
  #crowded = false
  #sharedMs = Number.NEGATIVE_INFINITY
  #lastName: string | undefined
  #last: LaneUse | undefined

  constructor({ name, clock, maxLanes = DEFAULT_MAX_LANES, named = [] }: LaneRegistryOptions) {
    this.name = name
    this.#clock = clock
    this.#maxLanes = maxLanes
    this.#named = new Set(named)
  }

  /** For the guard that replaces another one of this name, with other options. */
  configure(maxLanes: number, named: Iterable<string>): void {
    this.#maxLanes = maxLanes
    this.nameLanes(named)
    this.#crowded = false
  }

  /** Replaces the lanes that the options name. */
  nameLanes(named: Iterable<string>): void {
    this.#named = new Set(named)
  }

  /** From now on this lane always exists. */
  keep(lane: string): void {
    this.#kept.add(lane)
  }

  /** Where limits differ, calls of further lanes share several lanes. */
  shareOverflow(overflow: OverflowLanes | undefined): void {
    this.#overflow = overflow
    this.#overflowLanes = new Set([OTHER_LANE, ...(overflow?.overflowLanes ?? [])])
  }

  get maxLanes(): number {
    return this.#maxLanes
  }

  /** How many lanes count towards `maxLanes`. */
  get size(): number {
    let size = this.#lanes.size
    for (const lane of this.#overflowLanes) if (this.#lanes.has(lane)) size--
    return size
  }

  has(lane: string): boolean {
    return this.#lanes.has(lane)
  }

  /** It is named in the options, or is needed independent of `maxLanes`. */
  isPermanent(lane: string): boolean {
    return (
      lane === DEFAULT_LANE ||
      lane === ALL_LANES ||
      this.#overflowLanes.has(lane) ||
      this.#named.has(lane) ||
      this.#kept.has(lane)
    )
  }

  /** Lanes that exist because they were used: permanent ones first, then by last use, latest first. */
  names(): string[] {
    const names = [...this.#lanes.keys()].reverse()
    const rest = names.filter((name) => !this.isPermanent(name))
    return rest.length === names.length
      ? names
      : [...names.filter((name) => this.isPermanent(name)), ...rest]
  }

  /** The lane that a call of this name would probably use. Creates nothing. */
  expected(name: string): string {
    const shares = this.#crowded && !this.#lanes.has(name) && !this.isPermanent(name)
    return shares ? this.overflowOf(name) : name
  }

  /** The lane that calls of this name share if their own does not exist. */
  overflowOf(name: string): string {
    return this.#overflow?.overflowOf(name) ?? OTHER_LANE
  }

  /** Calls of several names share the lane. */
  isOverflow(lane: string): boolean {
    return this.#overflowLanes.has(lane)
  }

  /**
   * The lane that a call of this name uses: its own, or `(other)` if there are `maxLanes` lanes and
   * none of them can be dropped. Only for calls that no stage before the breaker refused.
   */
  enter(name: string): string {
    if (name === ALL_LANES) return name
    if (name === this.#lastName) {
      ;(this.#last as LaneUse).usedMs = turnMs(this.#clock)
      return name
    }
    if (this.tryAdd(name)) return this.#use(name)
    const shared = this.overflowOf(name)
    this.#share(shared)
    return this.#use(shared)
  }

  /** Creates the lane if there is room for it, or if an idle one can be dropped. */
  tryAdd(name: string): boolean {
    if (this.#lanes.has(name)) return true
    const fits = this.isPermanent(name) || this.size < this.#maxLanes || this.#dropIdle()
    if (fits) this.add(name)
    this.#crowded = !fits
    return fits
  }

  /** Creates the lane even beyond `maxLanes`, because other state already depends on it. */
  add(name: string): void {
    if (name === ALL_LANES || this.#lanes.has(name)) return
    const nowMs = this.#clock.now()
    this.#lanes.set(name, { slots: 0, usedMs: nowMs, busyMs: nowMs })
  }

  /** Attempts of this lane hold this many more slots; a lane with slots is never dropped. */
  hold(lane: string, slots: number): void {
    if (!this.#lanes.has(lane)) this.add(lane)
    const use = this.#lanes.get(lane)
    if (use !== undefined) use.slots += slots
  }

  release(lane: string): void {
    const use = this.#lanes.get(lane)
    if (use !== undefined && use.slots > 0) use.slots--
  }

  /** Called periodically: drops lanes that were idle for `LANE_REST_MS`. */
  sweep(): void {
    const nowMs = this.#clock.now()
    for (const [name, use] of this.#lanes) {
      if (!this.#canDrop(name, nowMs)) use.busyMs = nowMs
      else if (nowMs - Math.max(use.usedMs, use.busyMs) >= LANE_REST_MS) this.#drop(name)
    }
    if (this.size < this.#maxLanes) this.#crowded = false
  }

  attach(holder: LaneHolder): void {
    this.#holders.add(holder)
  }

  /** Its state no longer counts. */
  detach(holder: LaneHolder): void {
    this.#holders.delete(holder)
  }

  /** Moves the lane to the end of the order of use. */
  #use(name: string): string {
    this.add(name)
    const use = this.#lanes.get(name) as LaneUse
    use.usedMs = this.#clock.now()
    this.#lanes.delete(name)
    this.#lanes.set(name, use)
    this.#lastName = name
    this.#last = use
    return name
  }

  #dropIdle(): boolean {
    const nowMs = this.#clock.now()
    for (const name of this.#lanes.keys()) {
      if (!this.#canDrop(name, nowMs)) continue
      this.#drop(name)
      return true
    }
    return false
  }

  #canDrop(name: string, nowMs: number): boolean {
    const { slots, usedMs } = this.#lanes.get(name) as LaneUse
    if (slots > 0 || this.isPermanent(name)) return false
    for (const holder of this.#holders) if (!holder.isIdle(name, nowMs - usedMs)) return false
    return true
  }

  #drop(name: string): void {
    this.#lanes.delete(name)
    for (const holder of this.#holders) holder.drop(name)
    if (this.#lastName === name) this.#lastName = undefined
  }

  /** One event for as long as calls keep sharing `(other)`. */
  #share(lane: string): void {
    const nowMs = this.#clock.now()
    const isNew = nowMs - this.#sharedMs >= REPORT_AGAIN_MS
    this.#sharedMs = nowMs
    if (!isNew || !listening()) return
    emit({ type: 'lanes.full', name: this.name, lane, maxLanes: this.#maxLanes })
  }
}

export interface LaneMapOptions<T> {
  create(lane: string): T
  /** Whether nothing is lost if this is dropped. Default: always. */
  isIdle?(value: T, unusedMs: number): boolean
}

/** State by lane: it is dropped when the registry drops its lane. */
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
