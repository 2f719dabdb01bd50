/** The gate of each lane that is in use, or recently was. */
import type { Clock } from '../core/time/clock.js'
import { LaneMap } from '../shared/lanes/lane-map.js'
import type { LaneRegistry } from '../shared/lanes/lane-registry.js'
import { Gate } from './gate.js'
import type { Room } from './room.js'

export class Gates {
  readonly #gates: LaneMap<Gate>

  constructor(clock: Clock, room: Room, lanes: LaneRegistry) {
    this.#gates = new LaneMap(lanes, {
      create: (lane) => new Gate(lane),
      isIdle: (gate) =>
        !gate.underWay &&
        gate.timer === undefined &&
        !gate.isBlocked(clock.now()) &&
        room.lengthOf(gate.lane) === 0,
    })
  }

  /** Creates nothing. */
  known(lane: string): Gate | undefined {
    return this.#gates.get(lane)
  }

  of(lane: string): Gate {
    return this.#gates.of(lane)
  }

  lanes(): Iterable<string> {
    return this.#gates.lanes()
  }

  close(): void {
    for (const { timer } of this.#gates.values()) timer?.cancel()
    this.#gates.close()
  }
}
