/** Reports limits that the vendor does not grant in full, at a bounded rate. */
import { emit, listening } from '../../core/events.js'
import type { Clock } from '../../core/time/clock.js'
import { LaneMap, type LaneRegistry } from '../lanes/lane-registry.js'

/** A limit is reported at most this often. */
const EVERY_MS = 10_000
/** A change by less than this part of the limit is not reported. */
const NOTABLE = 0.1

interface Reported {
  effective: number
  atMs: number
}

export interface LearnedChange {
  lane: string
  limit: string
  configured: number
  effective: number
}

export class LearnedEvents {
  readonly #name: string
  readonly #clock: Clock
  /** By lane and limit. */
  readonly #lanes: LaneMap<Map<string, Reported>>

  constructor(name: string, clock: Clock, lanes: LaneRegistry) {
    this.#name = name
    this.#clock = clock
    this.#lanes = new LaneMap(lanes, { create: () => new Map() })
  }

  changed({ lane, limit, configured, effective }: LearnedChange): void {
    if (effective >= configured || !listening()) return
    const limits = this.#lanes.of(lane)
    const known = limits.get(limit)
    const atMs = this.#clock.now()
    if (known !== undefined) {
      const isNotable = Math.abs(effective - known.effective) > known.effective * NOTABLE
      if (!isNotable || atMs - known.atMs < EVERY_MS) return
    }
    limits.set(limit, { effective, atMs })
    emit({ type: 'limit.learned', name: this.#name, lane, limit, configured, effective })
  }

  close(): void {
    this.#lanes.close()
  }
}
