/** What all calls of one guard have in common. */

import type { LinkedList } from '../core/collections/linked-list.js'
import type { OutcomeOptions } from '../core/outcome.js'
import type { Clock } from '../core/time/clock.js'
import type { Shedder } from '../local/load-shedder/shedder.js'
import type { RetryBudget } from '../local/retry/retry-budget.js'
import type { RetryPolicy } from '../local/retry/retry-call.js'
import type { TimedCall } from '../local/timeout/timed-call.js'
import type { LocalTimeout } from '../local/timeout/timeout.js'
import type { FleetBreaker } from '../shared/circuit-breaker/fleet-breaker.js'
import type { LanePermit as BreakerPermit } from '../shared/circuit-breaker/lane-breaker.js'
import type { LaneRegistry } from '../shared/lanes/lane-registry.js'
import type { StoreWatch } from '../shared/outage/store-watch.js'
import type { CallQueue } from '../shared/permit-queue/call-queue.js'
import type { PermitDispatcher } from '../shared/permit-queue/permit-dispatcher.js'
import type { AttemptPermits, PermitCall } from '../shared/permit-queue/ports.js'
import type { LimitReply } from '../shared/rate-limiter/limit-client.js'
import type { LanePermit as LimitPermit } from '../shared/rate-limiter/permit.js'
import type { LevelsAlone } from '../shared/user-limits/outage-levels.js'
import type { Store } from '../store/port.js'
import type { AttemptMeter } from './attempt-meter.js'
import type { DecisionWatcher } from './decisions/follower.js'
import type { Hedger } from './hedger.js'
import type { LaneThrottles } from './lane-throttles.js'
import type { CheckedGuard } from './options.js'
import type { CallResumer } from './queue/resume.js'
import type { Shadow } from './shadow.js'
import type { LimitStage, UserStage } from './shared-stages.js'
import type { Slots } from './slots.js'
import type { BodyLimits } from './stream/body-limits.js'
import type { Tally } from './tally.js'
import type { Timings } from './timings.js'
import type { GuardTracer } from './trace.js'

export interface Machinery {
  readonly name: string
  readonly store: Store
  /** The store is in this process and goes by the same clock. */
  readonly sameClock: boolean
  readonly clock: Clock
  readonly options: CheckedGuard
  /** Resolves the lane of each call; also of the guard that this one replaces. */
  readonly lanes: LaneRegistry
  readonly room: CallQueue
  readonly slots: Slots
  readonly starter: CallResumer<CallAdmission>
  readonly dispatcher: PermitDispatcher<BreakerPermit, LimitPermit, LimitReply>
  readonly breaker: FleetBreaker | undefined
  /** Those that calls wait for. */
  readonly limits: LimitStage | undefined
  /** The same, or those in shadow: what is counted, whether or not it is in force. */
  readonly counted: LimitStage | undefined
  /** Stages that only report. */
  readonly shadow: Shadow | undefined
  readonly users: UserStage | undefined
  /** What users may while the store is away; nothing where they have no limits, or the store is here. */
  readonly levelsAlone: LevelsAlone | undefined
  /** Over a remote store. */
  readonly watch: StoreWatch | undefined
  readonly timeout: LocalTimeout
  /** For answers that go on. */
  readonly bodies: BodyLimits
  readonly retry: RetryPolicy | undefined
  /** What retries and hedges are paid from. */
  readonly budget: RetryBudget | undefined
  readonly shedder: Shedder | undefined
  readonly throttles: LaneThrottles | undefined
  readonly hedger: Hedger | undefined
  /** Learns from how attempts are answered. */
  readonly meter: AttemptMeter | undefined
  /** A single attempt, for those who want to be told of it. */
  readonly once: RetryPolicy
  readonly judging: OutcomeOptions
  readonly tally: Tally
  /** Calls that run. */
  readonly running: LinkedList<TimedCall<unknown>>
  /** Gives back, before its time, each slot whose work has outlived its call. */
  readonly overdue: Set<() => void>
  /** Follows every call. */
  readonly tracer: GuardTracer | undefined
  /** Nothing, until somebody wants to know. */
  timings: Timings | undefined
  /** The same. */
  decisions: DecisionWatcher | undefined
  closed: boolean
  /** Told when a slot has come free. */
  onFree(): void
}

export type CallAdmission = AttemptPermits<BreakerPermit, LimitPermit>
export type WaitingCall = PermitCall<BreakerPermit, LimitPermit>
