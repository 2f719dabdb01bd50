/**
 * With a quorum one pod's failures do not open the fleet's breaker. Each pod also has a breaker of its
 * own, which is not shared, so that a pod that cannot reach the downstream stops trying.
 */
import type { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { BreakerStateName } from './api.js'
import {
  type Entry,
  LaneBreaker,
  type LaneBreakerOptions,
  type LanePermit,
} from './lane-breaker.js'

interface PairPermit extends LanePermit {
  readonly fleet: LanePermit
  readonly own: LanePermit
}

export class QuorumLane {
  readonly fleet: LaneBreaker
  readonly #own: LaneBreaker

  /** `privately`: the same options, on a store of this pod alone. */
  constructor(fleet: LaneBreaker, privately: LaneBreakerOptions) {
    this.fleet = fleet
    this.#own = new LaneBreaker(privately)
  }

  get selfIsolated(): boolean {
    return this.#own.state !== 'closed'
  }

  get isClear(): boolean {
    return this.fleet.isClear && this.#own.isClear
  }

  get isIdle(): boolean {
    return this.fleet.isIdle && this.#own.isIdle
  }

  get hasNothingInFlight(): boolean {
    return this.fleet.hasNothingInFlight && this.#own.hasNothingInFlight
  }

  get state(): BreakerStateName {
    return this.fleet.state
  }

  knownRefusal(): SpillwayError | undefined {
    return (this.fleet.state === 'closed' ? this.#own : this.fleet).knownRefusal()
  }

  enter(): Entry | Promise<Entry> {
    // While the fleet probes the downstream, the pod's own counts mean nothing.
    if (this.fleet.state !== 'closed') return this.fleet.enter()
    const own = this.#own.enter()
    if (isThenable(own)) return own.then((entry) => this.#enterFleet(entry))
    return this.#enterFleet(own)
  }

  exit(permit: LanePermit, outcome: Outcome): void {
    if (!isPair(permit)) return this.fleet.exit(permit, outcome)
    this.#own.exit(permit.own, outcome)
    this.fleet.exit(permit.fleet, outcome)
  }

  repeat(permit: LanePermit): void {
    if (!isPair(permit)) return this.fleet.repeat(permit)
    this.#own.repeat(permit.own)
    this.fleet.repeat(permit.fleet)
  }

  hedge(first: LanePermit, second: LanePermit): void {
    if (isPair(first) && isPair(second)) {
      this.#own.hedge(first.own, second.own)
      this.fleet.hedge(first.fleet, second.fleet)
    } else if (!isPair(first) && !isPair(second)) {
      this.fleet.hedge(first, second)
    }
  }

  note(outcome: Outcome): void {
    this.#own.note(outcome)
    this.fleet.note(outcome)
  }

  /** The fleet's breaker has changed: the pod's own starts anew. */
  forget(): void {
    void this.#own.command({ kind: 'reset' })
  }

  /** Of its own breaker; the fleet's is synchronised with the other lanes. */
  ask(): ReturnType<LaneBreaker['ask']> {
    return this.#own.ask()
  }

  close(): Promise<void> {
    return this.#own.close()
  }

  #enterFleet(own: Entry): Entry | Promise<Entry> {
    if (!isPermit(own)) return own
    const fleet = this.fleet.enter()
    if (isThenable(fleet)) return fleet.then((entry) => this.#pair(own, entry))
    return this.#pair(own, fleet)
  }

  #pair(own: LanePermit, fleet: Entry): Entry {
    if (!isPermit(fleet)) {
      this.#own.exit(own, 'ignored')
      return fleet
    }
    const { lane, generation, probe, id } = fleet
    const pair: PairPermit = { lane, generation, probe, id, fleet, own }
    return pair
  }
}

export function isPermit(entry: Entry | Promise<Entry>): entry is LanePermit
export function isPermit(entry: Entry): entry is LanePermit
export function isPermit(entry: Entry | Promise<Entry>): entry is LanePermit {
  return 'generation' in entry
}

function isPair(permit: LanePermit): permit is PairPermit {
  return 'fleet' in permit
}
