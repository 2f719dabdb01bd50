/**
 * With a quorum the failures of one pod do not open the fleet's breaker. Each pod also has a local breaker, so a pod
 * that cannot reach the downstream stops calling it.
 */
import type { SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { BreakerPermit, BreakerStateName } from './api.js'
import { type BreakerEntry, isBreakerPermit } from './lane/breaker-permit.js'
import { LaneBreaker, type LaneBreakerOptions } from './lane/lane-breaker.js'

interface QuorumPermit extends BreakerPermit {
  readonly fleet: BreakerPermit
  readonly own: BreakerPermit
}

export class QuorumBreaker {
  readonly fleet: LaneBreaker
  readonly #own: LaneBreaker

  /** `ownOptions`: those of the fleet's breaker, on a store of this pod alone. */
  constructor(fleet: LaneBreaker, ownOptions: LaneBreakerOptions) {
    this.fleet = fleet
    this.#own = new LaneBreaker(ownOptions)
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

  enter(): BreakerEntry | Promise<BreakerEntry> {
    // While the fleet probes the downstream, the pod's own counts mean nothing.
    if (this.fleet.state !== 'closed') return this.fleet.enter()
    const own = this.#own.enter()
    if (isThenable(own)) return own.then((entry) => this.#enterFleet(entry))
    return this.#enterFleet(own)
  }

  exit(permit: BreakerPermit, outcome: Outcome): void {
    if (!isQuorumPermit(permit)) return this.fleet.exit(permit, outcome)
    this.#own.exit(permit.own, outcome)
    this.fleet.exit(permit.fleet, outcome)
  }

  markRepeated(permit: BreakerPermit): void {
    if (!isQuorumPermit(permit)) return this.fleet.markRepeated(permit)
    this.#own.markRepeated(permit.own)
    this.fleet.markRepeated(permit.fleet)
  }

  markAnswered(permit: BreakerPermit): void {
    if (!isQuorumPermit(permit)) return this.fleet.markAnswered(permit)
    this.#own.markAnswered(permit.own)
    this.fleet.markAnswered(permit.fleet)
  }

  hedge(first: BreakerPermit, second: BreakerPermit): void {
    if (isQuorumPermit(first) && isQuorumPermit(second)) {
      this.#own.hedge(first.own, second.own)
      this.fleet.hedge(first.fleet, second.fleet)
    } else if (!isQuorumPermit(first) && !isQuorumPermit(second)) {
      this.fleet.hedge(first, second)
    }
  }

  record(outcome: Outcome): void {
    this.#own.record(outcome)
    this.fleet.record(outcome)
  }

  /** The fleet's breaker has changed: the pod's local breaker starts again. */
  resetOwn(): void {
    void this.#own.command({ kind: 'reset' })
  }

  /** Of the local breaker; the fleet's breaker is synchronised with the other lanes. */
  stateRequest(): ReturnType<LaneBreaker['stateRequest']> {
    return this.#own.stateRequest()
  }

  close(): Promise<void> {
    return this.#own.close()
  }

  #enterFleet(own: BreakerEntry): BreakerEntry | Promise<BreakerEntry> {
    if (!isBreakerPermit(own)) return own
    const fleet = this.fleet.enter()
    if (isThenable(fleet)) return fleet.then((entry) => this.#combine(own, entry))
    return this.#combine(own, fleet)
  }

  #combine(own: BreakerPermit, fleet: BreakerEntry): BreakerEntry {
    if (!isBreakerPermit(fleet)) {
      this.#own.exit(own, 'ignored')
      return fleet
    }
    const { lane, generation, probe, probeId } = fleet
    const combined: QuorumPermit = { lane, generation, probe, probeId, fleet, own }
    return combined
  }
}

function isQuorumPermit(permit: BreakerPermit): permit is QuorumPermit {
  return 'fleet' in permit
}
