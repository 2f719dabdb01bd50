/**
 * An attempt that may get a second one beside it when it takes longer than nearly all others. To the call it is
 * one attempt; to breaker, limits and slots they are two.
 */
import { callSafely } from '../../core/events.js'
import type { Outcome, Verdict } from '../../core/outcome.js'
import { isThenable } from '../../core/thenable.js'
import type { Timer } from '../../core/time/clock.js'
import {
  HedgeLostError,
  Race,
  type RaceEnd,
  type RaceRunner,
  type RaceSide,
} from '../../local/hedge/race.js'
import type { HedgeStage } from '../stages/hedge.js'
import {
  type AttemptDependencies,
  type AttemptListener,
  type AttemptParts,
  GuardAttempt,
} from './attempt.js'
import type { Permits, StageCall } from './stage.js'

export class HedgedAttempt<T> implements RaceRunner<T> {
  readonly #stage: HedgeStage
  readonly #attempts: AttemptDependencies
  /** The call that both attempts belong to. */
  readonly #call: StageCall
  /** Of the first attempt. */
  readonly #parts: AttemptParts<T>
  readonly #listener: AttemptListener<T>
  readonly #race = new Race<T>(this)
  readonly first: GuardAttempt<T>
  #second: GuardAttempt<T> | undefined
  #delayMs = 0
  #timer: Timer | undefined

  constructor(
    stage: HedgeStage,
    attempts: AttemptDependencies,
    call: StageCall,
    parts: AttemptParts<T>,
    listener: AttemptListener<T>,
  ) {
    this.#stage = stage
    this.#attempts = attempts
    this.#call = call
    this.#parts = parts
    this.#listener = listener
    this.first = this.#attempt(parts, this.#race.first)
  }

  start(): void {
    const { startMs } = this.first
    const delayMs = this.#stage.delay.delayMs(startMs)
    this.first.start()
    if (delayMs === undefined || this.#race.over) return
    this.#delayMs = delayMs
    this.#timer = this.#attempts.clock.schedule(delayMs, () => this.#hedge())
    this.#timer.unref()
  }

  #hedge(): void {
    const call = this.#call
    if (this.#race.over || call.options.signal?.aborted === true) return
    const lane = this.#stage.laneFor(this.#parts.lane)
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
    const parts = { ...this.#parts, lane, permits, startMs: nowMs, hedge: true }
    const make = () => this.#attempt(parts, side)
    const second = callSafely(guard, 'tracer', make, undefined)
    if (second === undefined) pipeline.cancel(lane, permits)
    if (second === undefined || pipeline.acquire(second) !== undefined) {
      // The first attempt continues.
      return this.#race.leave()
    }
    this.#stage.begun(this.#delayMs)
    this.#second = second
    // On another lane it is a separate call for the breaker.
    if (lane === this.#parts.lane) breaker?.hedged(this.first, second)
    second.start()
  }

  #attempt(parts: AttemptParts<T>, side: RaceSide<T>): GuardAttempt<T> {
    const listener = new SideListener(this.#race, side, this.#listener)
    return new GuardAttempt(this.#attempts, parts, listener)
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
    if (answered) this.#listener.onValue(end.value, verdict)
    else this.#listener.onError(end.error, verdict)
  }
}

/** Receives the events of one of the two attempts. */
class SideListener<T> implements AttemptListener<T> {
  readonly #race: Race<T>
  readonly #side: RaceSide<T>
  readonly #call: AttemptListener<T>

  constructor(race: Race<T>, side: RaceSide<T>, call: AttemptListener<T>) {
    this.#race = race
    this.#side = side
    this.#call = call
  }

  onValue(value: T, verdict: Verdict): void {
    this.#race.ended(this.#side, { value }, verdict)
  }

  onError(error: unknown, verdict: Verdict): void {
    this.#race.ended(this.#side, { error }, verdict)
  }

  onStarted(): void {
    this.#call.onStarted?.()
  }

  onReleased(outcome: Outcome, unfinished: Promise<unknown> | undefined): void {
    this.#call.onReleased?.(this.#race.hasLost(this.#side) ? undefined : outcome, unfinished)
  }
}
