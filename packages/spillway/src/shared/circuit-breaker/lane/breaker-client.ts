/**
 * The requests of one lane to the store. Every reply updates this pod's replica before its sender continues,
 * together with the number of changes known when the request was sent (see `replica.ts`).
 */
import { isThenable } from '../../../core/thenable.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerReport,
  BreakerStore,
  BreakerView,
  MaybePromise,
  ProbeReply,
  SyncRequest,
} from '../../../store/port.js'
import type { Replica } from './replica.js'
import type { PendingReport, Report } from './reporter.js'

/** A report that is sent with another request to the store. */
export interface PiggybackedReport {
  report: BreakerReport
  /** The store has returned this view. */
  arrived(view: BreakerView): void
  /** No reply arrived. The report is resent automatically. */
  lost(): void
}

/** A request for the state of a lane, to be sent together with those of other lanes. */
export interface StateRequest {
  request: SyncRequest
  receive(view: BreakerView): void
}

export class BreakerClient {
  readonly #store: BreakerStore
  readonly #ref: BreakerRef
  readonly #pod: string
  readonly #replica: Replica
  readonly #receive: (view: BreakerView, requested: number) => void

  constructor(
    store: BreakerStore,
    ref: BreakerRef,
    pod: string,
    replica: Replica,
    receive: (view: BreakerView, requested: number) => void,
  ) {
    this.#store = store
    this.#ref = ref
    this.#pod = pod
    this.#replica = replica
    this.#receive = receive
  }

  report(report: Report): MaybePromise<void> {
    const { changes } = this.#replica
    return this.#received(this.#store.report(this.#addressed(report)), changes)
  }

  piggyback(pending: PendingReport): PiggybackedReport {
    const { changes } = this.#replica
    return {
      report: this.#addressed(pending.report),
      arrived: (view) => {
        this.#receive(view, changes)
        pending.arrived()
      },
      lost: pending.lost,
    }
  }

  command(command: BreakerCommand['command']): MaybePromise<void> {
    const { changes } = this.#replica
    return this.#received(this.#store.command({ ...this.#ref, command }), changes)
  }

  requestProbes(probes: readonly string[]): MaybePromise<ProbeReply> {
    const { changes } = this.#replica
    const reply = this.#store.probe({ ...this.#ref, probes })
    const received = (each: ProbeReply) => {
      this.#receive(each.view, changes)
      return each
    }
    return isThenable(reply) ? reply.then(received) : received(reply)
  }

  /** `renew`: the running probes of this pod. */
  stateRequest(renew: readonly string[]): StateRequest {
    const { changes } = this.#replica
    return { request: { ...this.#ref, renew }, receive: (view) => this.#receive(view, changes) }
  }

  #addressed(report: Report): BreakerReport {
    const { guard, lane, spec } = this.#ref
    return { guard, lane, spec, pod: this.#pod, ...report }
  }

  #received(reply: MaybePromise<BreakerView>, changes: number): MaybePromise<void> {
    return isThenable(reply)
      ? reply.then((view) => this.#receive(view, changes))
      : this.#receive(reply, changes)
  }
}
