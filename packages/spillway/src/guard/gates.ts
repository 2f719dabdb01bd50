/** The gates of all lanes that are in use, or lately were. */
import type { Clock } from '../core/clock.js'
import { Gate } from './gate.js'
import type { Room } from './room.js'

const MOST_IDLE = 256

export class Gates {
  readonly #clock: Clock
  readonly #room: Room
  readonly #gates = new Map<string, Gate>()
  /** Nearly always the same as last time. */
  #last: Gate | undefined
  #sweepAt = MOST_IDLE

  constructor(clock: Clock, room: Room) {
    this.#clock = clock
    this.#room = room
  }

  /** Nothing is known of one that there is none of. */
  known(lane: string): Gate | undefined {
    if (this.#last?.lane === lane) return this.#last
    const gate = this.#gates.get(lane)
    if (gate !== undefined) this.#last = gate
    return gate
  }

  of(lane: string): Gate {
    const known = this.known(lane)
    if (known !== undefined) return known
    if (this.#gates.size >= this.#sweepAt) this.#sweep()
    const gate = new Gate(lane)
    this.#gates.set(lane, gate)
    return gate
  }

  lanes(): Iterable<string> {
    return this.#gates.keys()
  }

  close(): void {
    for (const { timer } of this.#gates.values()) timer?.cancel()
  }

  /** Names of lanes may be many; those that nothing is known of are forgotten. */
  #sweep(): void {
    const nowMs = this.#clock.now()
    for (const [lane, gate] of this.#gates) {
      const idle = !gate.underWay && gate.timer === undefined && !gate.isBlocked(nowMs)
      if (idle && this.#room.lengthOf(lane) === 0) this.#gates.delete(lane)
    }
    this.#last = undefined
    this.#sweepAt = Math.max(MOST_IDLE, this.#gates.size * 2)
  }
}
