/**
 * What a lane says to the store and asks it. Whatever comes back is heard before anybody goes on, together with what
 * was known when it was asked: only so can the answer of another store be told from an old one.
 */
import { isThenable } from '../../core/thenable.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerReport,
  BreakerStore,
  BreakerView,
  MaybePromise,
  ProbeReply,
  SyncRequest,
} from '../../store/port.js'
import type { Replica } from './replica.js'
import type { Report, Ride } from './reporter.js'

/** Outcomes that go along with something else on its way to the store. */
export interface BreakerRide {
  report: BreakerReport
  /** With what the store said. */
  arrived(view: BreakerView): void
  /** Nobody knows. They are told again. */
  lost(): void
}

/** How a lane stands, to be asked together with others; and who hears the answer. */
export interface Question {
  request: SyncRequest
  hear(view: BreakerView): void
}

export class LaneLine {
  readonly #store: BreakerStore
  readonly #ref: BreakerRef
  readonly #pod: string
  readonly #replica: Replica
  readonly #hear: (view: BreakerView, asked: number) => void

  constructor(
    store: BreakerStore,
    ref: BreakerRef,
    pod: string,
    replica: Replica,
    hear: (view: BreakerView, asked: number) => void,
  ) {
    this.#store = store
    this.#ref = ref
    this.#pod = pod
    this.#replica = replica
    this.#hear = hear
  }

  report(report: Report): MaybePromise<void> {
    const { news } = this.#replica
    return this.#heard(this.#store.report(this.#addressed(report)), news)
  }

  /** The same for somebody who leaves for the store now and takes it along. */
  along(ride: Ride): BreakerRide {
    const { news } = this.#replica
    return {
      report: this.#addressed(ride.report),
      arrived: (view) => {
        this.#hear(view, news)
        ride.arrived()
      },
      lost: ride.lost,
    }
  }

  command(command: BreakerCommand['command']): MaybePromise<void> {
    const { news } = this.#replica
    return this.#heard(this.#store.command({ ...this.#ref, command }), news)
  }

  probe(probes: readonly string[]): MaybePromise<ProbeReply> {
    const { news } = this.#replica
    const reply = this.#store.probe({ ...this.#ref, probes })
    const heard = (each: ProbeReply) => {
      this.#hear(each.view, news)
      return each
    }
    return isThenable(reply) ? reply.then(heard) : heard(reply)
  }

  /** `renew`: probes that still run. */
  question(renew: readonly string[]): Question {
    const { news } = this.#replica
    return { request: { ...this.#ref, renew }, hear: (view) => this.#hear(view, news) }
  }

  #addressed(report: Report): BreakerReport {
    const { guard, lane, spec } = this.#ref
    return { guard, lane, spec, pod: this.#pod, ...report }
  }

  #heard(reply: MaybePromise<BreakerView>, asked: number): MaybePromise<void> {
    return isThenable(reply)
      ? reply.then((view) => this.#hear(view, asked))
      : this.#hear(reply, asked)
  }
}
