/**
 * The state of a breaker as this pod knows it, in this pod's time. Views arrive with every reply of the store
 * and by push, in any order; a view that is older than the known one changes nothing. The exception is the
 * reply to a request sent since the last change: after a failover the new server may be behind the old one,
 * and its state is the one that counts.
 */
import type { BreakerSpec } from '../../../store/breaker-spec.js'
import { SET_BACK_US } from '../../../store/clock-setback.js'
import type { BreakerView } from '../../../store/port.js'
import type { BreakerStateName } from '../api.js'
import { tripCause } from './trip-cause.js'

const NOTHING_KNOWN: BreakerView = {
  nowUs: 0,
  version: 0,
  generation: 0,
  kind: 0,
  untilUs: 0,
  closedAtUs: 0,
  openings: 0,
  probes: 0,
  successes: 0,
  failedProbes: 0,
  isolatedUntilUs: 0,
  calls: 0,
  failures: 0,
  slow: 0,
  inFlight: 0,
  consecutive: 0,
}

export class Replica {
  view: BreakerView = NOTHING_KNOWN
  /** The number of views that were accepted. A request notes it when it is sent. */
  changes = 0
  /** When the last view was received, by this pod's clock. */
  receivedMs = Number.NEGATIVE_INFINITY
  openUntilMs = 0
  isolatedUntilMs = 0
  closedAtMs = Number.NEGATIVE_INFINITY
  #cause: string | undefined

  /** Returns whether the view was accepted. `requested`: `changes` when the request was sent, if it is a reply. */
  receive(view: BreakerView, nowMs: number, requested?: number): boolean {
    const known = this.view
    const behindUs = known.nowUs - view.nowUs
    const older = behindUs > 0 || (behindUs === 0 && view.version < known.version)
    if (older && requested !== this.changes && behindUs <= SET_BACK_US) return false
    this.changes++
    this.view = view
    this.#cause = undefined
    this.receivedMs = nowMs
    const ours = (us: number) => nowMs + (us - view.nowUs) / 1_000
    if (view.kind === 1) this.openUntilMs = ours(view.untilUs)
    this.isolatedUntilMs = view.isolatedUntilUs > 0 ? ours(view.isolatedUntilUs) : 0
    this.closedAtMs = view.closedAtUs > 0 ? ours(view.closedAtUs) : Number.NEGATIVE_INFINITY
    return true
  }

  /** Why the circuit opened, in words. Computed once for each view, because refusals have to be cheap. */
  cause(spec: BreakerSpec): string {
    this.#cause ??= tripCause(this.view, spec)
    return this.#cause
  }

  /** When this state ends without a further event; undefined if it does not. */
  endsMs(state: BreakerStateName): number | undefined {
    if (state === 'isolated') return this.isolatedUntilMs
    return state === 'open' ? this.openUntilMs : undefined
  }

  stateAt(nowMs: number): BreakerStateName {
    if (this.isolatedUntilMs > nowMs) return 'isolated'
    if (this.view.kind === 0) return 'closed'
    // After its open time a breaker is half-open on every pod, without a message.
    return this.view.kind === 1 && this.openUntilMs > nowMs ? 'open' : 'half-open'
  }
}
