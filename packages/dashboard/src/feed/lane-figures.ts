/**
 * Remaining units of each lane's limits, for all guards, from the store. Each lane takes a round trip, so a limited
 * number of lanes is read per second, in turn. Figures of other lanes are older and have their age.
 */
import type { Clock } from 'spillway'
import type { SharedGuard } from 'spillway/internal'
import type { RateLimiterFigures } from 'spillway/shared'
import type { FleetWatch } from './fleet-watch.js'

const MOST_TRIPS = 20

type LanesByGuard = ReturnType<FleetWatch['lanes']>

interface Known {
  figures: RateLimiterFigures
  atMs: number
}

export class LaneFigureBook {
  readonly #clock: Clock
  readonly #known = new Map<SharedGuard, Map<string, Known>>()
  #turn = 0
  #reading = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(guard: SharedGuard, lane: string): Known | undefined {
    return this.#known.get(guard)?.get(lane)
  }

  lanesOf(guard: SharedGuard): Iterable<string> {
    return this.#known.get(guard)?.keys() ?? []
  }

  /**
   * Reads the next lanes, including `lanes` that only other pods have used. If that fails, the old figures stay.
   * Rounds do not overlap.
   */
  async refresh(guards: readonly SharedGuard[], lanes: LanesByGuard): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      for (const guard of this.#known.keys()) {
        if (!guards.includes(guard)) this.#known.delete(guard)
      }
      const wanted = guards.flatMap((guard) => this.#wanted(guard, lanes.get(guard.name)))
      const first = wanted.length > MOST_TRIPS ? this.#turn % wanted.length : 0
      this.#turn = first + MOST_TRIPS
      const now = [...wanted.slice(first), ...wanted.slice(0, first)].slice(0, MOST_TRIPS)
      await Promise.allSettled(now.map((each) => this.#read(each)))
    } finally {
      this.#reading = false
    }
  }

  async #read({ guard, lane }: { guard: SharedGuard; lane: string }): Promise<void> {
    const { limits } = guard.parts
    if (limits === undefined || limits.alone) return
    const figures = await limits.look(lane)
    const lanes = this.#known.get(guard) ?? new Map<string, Known>()
    this.#known.set(guard, lanes)
    lanes.set(lane, { figures, atMs: this.#clock.now() })
  }

  /** Also drops lanes that are no longer used. */
  #wanted(guard: SharedGuard, elsewhere: Iterable<string> = []) {
    const { limits, lanes: own } = guard.parts
    if (limits === undefined) return []
    const lanes = new Set([...own.names(), ...elsewhere])
    for (const lane of this.lanesOf(guard)) {
      if (!lanes.has(lane)) this.#known.get(guard)?.delete(lane)
    }
    return Array.from(lanes, (lane) => ({ guard, lane }))
  }
}
