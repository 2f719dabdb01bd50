/**
 * An attempt that may get a second one beside it when it takes longer than nearly all others. To the call it is
 * one attempt; to breaker, limits and slots they are two.
 */
import { callSafely } from '../../core/events.js'
import type { Outcome, Verdict } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { Timer } from '../../core/time/clock.js'
import type { Deadline } from '../../core/time/deadline.js'
import {
  HedgeLostError,
  Race,
  type RaceEnd,
  type RaceRunner,
  type RaceSide,
} from '../../local/hedge/race.js'
import type { HedgeStage } from '../stages/hedge.js'
import { type AttemptDependencies, type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import type { Permits, StageCall } from './stage.js'
import type { CallTrace } from './trace.js'

/** The call that both attempts belong to. */
export interface HedgedCall<T> {
  readonly call: StageCall
  readonly fn: CallFunction<T>
  readonly deadline: Deadline | undefined
  readonly trace: CallTrace | undefined
}

export class HedgedAttempt<T> implements RaceRunner<T> {
  readonly #stage: HedgeStage
  readonly #attempts: AttemptDependencies
  readonly #hedged: HedgedCall<T>
  readonly #lane: string
  readonly #listener: AttemptListener<T>
  readonly #race = new Race<T>(this)
  readonly first: GuardAttempt<T>
  #second: GuardAttempt<T> | undefined
  #delayMs = 0
  #timer: Timer | undefined

  constructor(
    stage: HedgeStage,
    attempts: AttemptDependencies,
    hedged: HedgedCall<T>,
    permits: Permits,
    startMs: number,
    listener: AttemptListener<T>,
  ) {
    this.#stage = stage
    this.#attempts = attempts
    this.#hedged = hedged
    this.#lane = hedged.call.lane
    this.#listener = listener
    this.first = this.#attempt(this.#lane, permits, startMs, this.#race.first)
  }

  start(): void {
    const { startMs } = this.first
    const delayMs = this.#stage.delay.delayMs(startMs)
    this.first.start(this.#hedged.fn)
    if (delayMs === undefined || this.#race.over) return
    this.#delayMs = delayMs
    this.#timer = this.#attempts.clock.schedule(delayMs, () => this.#hedge())
    this.#timer.unref()
  }

  #hedge(): void {
    const { call } = this.#hedged
    if (this.#race.over || call.options.signal?.aborted === true) return
    const lane = this.#stage.laneFor(this.#lane)
    const second: StageCall = {
      kind: 'hedge',
      options: call.options,
      lane,
      priority: call.priority,
      arrivedMs: call.arrivedMs,
      deadlineMs: call.deadlineMs,
      attempt: call.attempt,
      cost: call.cost,
      costs: [],
      costsUnder: undefined,
    }
    const permits = this.#stage.take(this.#attempts.pipeline, second)
    if (isThenable(permits)) void permits.then((each) => this.#begin(lane, each))
    else this.#begin(lane, permits)
  }

  #begin(lane: string, permits: Permits | undefined): void {
    if (permits === undefined) return
    const { pipeline, breaker, clock, guard } = this.#attempts
    if (this.#race.over) return pipeline.cancel(lane, permits)
    const nowMs = clock.now()
    const side = this.#race.join()
    const make = () => this.#attempt(lane, permits, nowMs, side)
    const second = callSafely(guard, 'tracer', make, undefined)
    if (second === undefined) pipeline.cancel(lane, permits)
    if (second === undefined || pipeline.acquire(second) !== undefined) {
      // The first attempt simply goes on.
      return this.#race.leave()
    }
    this.#stage.begun(this.#delayMs)
    this.#second = second
    // On another lane it is a call of its own to the breaker.
    if (lane === this.#lane) breaker?.hedged(this.first, second)
    second.start(this.#hedged.fn)
  }

  #attempt(lane: string, permits: Permits, startMs: number, side: RaceSide<T>): GuardAttempt<T> {
    const { call, deadline, trace } = this.#hedged
    const { options, attempt } = call
    const { hedge } = side
    const own = new GuardAttempt(
      this.#attempts,
      { options, lane, permits, deadline, startMs, attempt, hedge },
      new SideListener(this.#race, side, this.#listener),
    )
    if (trace !== undefined) own.trace = trace.attempt({ lane, attempt, hedge })
    return own
  }

  breakOff(side: RaceSide<T>): void {
    const attempt = side.hedge ? this.#second : this.first
    attempt?.giveUp(new HedgeLostError())
  }

  onDecided(side: RaceSide<T>, end: RaceEnd<T>, verdict: Verdict): void {
    this.#timer?.cancel()
    const answered = 'value' in end
    if (answered) {
      const nowMs = this.#attempts.clock.now()
      this.#stage.delay.record(nowMs, nowMs - this.first.startMs)
      if (side.hedge) this.#stage.won(this.#delayMs)
    }
    this.#listener.onVerdict(verdict)
    if (answered) this.#listener.onValue(end.value)
    else this.#listener.onError(end.error)
  }
}

/** Hears how one of the two attempts ended. */
class SideListener<T> implements AttemptListener<T> {
  readonly #race: Race<T>
  readonly #side: RaceSide<T>
  readonly #call: AttemptListener<T>
  #verdict: Verdict = { outcome: 'ignored', retryable: false }

  constructor(race: Race<T>, side: RaceSide<T>, call: AttemptListener<T>) {
    this.#race = race
    this.#side = side
    this.#call = call
  }

  onVerdict(verdict: Verdict): void {
    this.#verdict = verdict
  }

  onValue(value: T): void {
    this.#race.ended(this.#side, { value }, this.#verdict)
  }

  onError(error: unknown): void {
    this.#race.ended(this.#side, { error }, this.#verdict)
  }

  onStarted(): void {
    this.#call.onStarted?.()
  }

  onReleased(outcome: Outcome): void {
    this.#call.onReleased?.(outcome)
  }
}
