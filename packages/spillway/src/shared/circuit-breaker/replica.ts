/**
 * What this pod knows of a breaker, in its own time. Told by the store with every reply and by push,
 * in any order: what is older than what it knows already changes nothing. Except the answer to a
 * question asked since: a store that took over from another may be less far on, and has lost what
 * that one knew.
 */

import { SET_BACK_US } from '../../store/clock-setback.js'
import type { BreakerView } from '../../store/port.js'
import type { BreakerStateName } from './api.js'

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
  /** How often it has heard something new; who asks takes it down. */
  news = 0
  /** When the store last said something, by our clock. */
  heardMs = Number.NEGATIVE_INFINITY
  openUntilMs = 0
  isolatedUntilMs = 0
  closedAtMs = Number.NEGATIVE_INFINITY

  /** Answers whether it was news. `asked`: if it is an answer, what `news` was at the question. */
  hear(view: BreakerView, nowMs: number, asked?: number): boolean {
    const known = this.view
    const behindUs = known.nowUs - view.nowUs
    const older = behindUs > 0 || (behindUs === 0 && view.version < known.version)
    if (older && asked !== this.news && behindUs <= SET_BACK_US) return false
    this.news++
    this.view = view
    this.heardMs = nowMs
    const ours = (us: number) => nowMs + (us - view.nowUs) / 1_000
    if (view.kind === 1) this.openUntilMs = ours(view.untilUs)
    this.isolatedUntilMs = view.isolatedUntilUs > 0 ? ours(view.isolatedUntilUs) : 0
    this.closedAtMs = view.closedAtUs > 0 ? ours(view.closedAtUs) : Number.NEGATIVE_INFINITY
    return true
  }

  /** When this state is over by itself. */
  endsMs(state: BreakerStateName): number | undefined {
    if (state === 'isolated') return this.isolatedUntilMs
    return state === 'open' ? this.openUntilMs : undefined
  }

  stateAt(nowMs: number): BreakerStateName {
    if (this.isolatedUntilMs > nowMs) return 'isolated'
    if (this.view.kind === 0) return 'closed'
    // Its time over, an open breaker is half-open without anybody having to say so.
    return this.view.kind === 1 && this.openUntilMs > nowMs ? 'open' : 'half-open'
  }
}
