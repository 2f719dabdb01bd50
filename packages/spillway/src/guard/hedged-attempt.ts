/**
 * An attempt of a call that may get a second one beside it, when it takes longer than nearly all others.
 * To the call it is one attempt; to breaker, limits and slots they are two.
 */

import { callSafely } from '../core/events.js'
import type { Verdict } from '../core/outcome.js'
import { isThenable } from '../core/thenable.js'
import type { Timer } from '../core/time/clock.js'
import type { Deadline } from '../core/time/deadline.js'
import {
  HedgeLostError,
  Race,
  type RaceEnd,
  type RaceRunner,
  type RaceSide,
} from '../local/hedge/race.js'
import { type AttemptListener, GuardAttempt } from './attempt.js'
import type { CallFunction } from './context.js'
import { giveBack, takeFree } from './free-now.js'
import type { Hedger } from './hedger.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { RunOptions } from './run-options.js'
import type { CallTrace } from './trace.js'

/** What both attempts of a call have in common. */
export interface HedgedCall<T> {
  readonly machinery: Machinery
  readonly fn: CallFunction<T>
  readonly options: RunOptions
  readonly lane: string
  readonly deadline: Deadline | undefined
  /** 1 for the first. */
  readonly attempt: number
  readonly trace: CallTrace | undefined
}

export class HedgedAttempt<T> implements RaceRunner<T> {
  readonly #hedger: Hedger
  readonly #call: HedgedCall<T>
  readonly #end: AttemptListener<T>
  readonly #race = new Race<T>(this)
  readonly first: GuardAttempt<T>
  #second: GuardAttempt<T> | undefined
  #delayMs = 0
  #timer: Timer | undefined

  constructor(
    hedger: Hedger,
    call: HedgedCall<T>,
    admission: CallAdmission,
    startMs: number,
    end: AttemptListener<T>,
  ) {
    this.#hedger = hedger
    this.#call = call
    this.#end = end
    this.first = this.#attempt(call.lane, admission, startMs, this.#race.first)
  }

  start(): void {
    const { fn, machinery } = this.#call
    const { startMs } = this.first
    const delayMs = this.#hedger.delay.delayMs(startMs)
    this.first.start(fn)
    if (delayMs === undefined || this.#race.over) return
    this.#delayMs = delayMs
    this.#timer = machinery.clock.schedule(delayMs, () => this.#hedge())
    this.#timer.unref()
  }

  #hedge(): void {
    const { lane, machinery, options } = this.#call
    if (this.#race.over || options.signal?.aborted === true) return
    const other = this.#hedger.laneFor(lane)
    const price = { cost: options.cost, costs: [], costsUnder: undefined }
    const admission = takeFree(machinery, this.#hedger, other, price)
    if (isThenable(admission)) void admission.then((each) => this.#begin(other, each))
    else this.#begin(other, admission)
  }

  #begin(lane: string, admission: CallAdmission | undefined): void {
    if (admission === undefined) return
    const { fn, machinery } = this.#call
    if (this.#race.over) return giveBack(machinery, lane, admission)
    const nowMs = machinery.clock.now()
    const side = this.#race.join()
    const make = () => this.#attempt(lane, admission, nowMs, side)
    const second = callSafely(machinery.name, 'tracer', make, undefined)
    if (second === undefined) {
      // The first attempt simply goes on, and nobody waits for this one.
      this.#race.leave()
      return giveBack(machinery, lane, admission)
    }
    this.#hedger.begun(this.#delayMs)
    this.#second = second
    second.hedge = true
    // On another lane it is a call of its own to the breaker.
    if (lane === this.#call.lane) this.first.hedgedBy(second)
    second.start(fn)
  }

  #attempt(
    lane: string,
    admission: CallAdmission,
    startMs: number,
    side: RaceSide<T>,
  ): GuardAttempt<T> {
    const { machinery, options, deadline, attempt, trace } = this.#call
    const end = new SideListener(this.#race, side)
    const own = new GuardAttempt(
      machinery,
      options,
      lane,
      admission,
      deadline,
      startMs,
      attempt,
      end,
    )
    if (trace !== undefined) own.trace = trace.attempt({ lane, attempt, hedge: side.hedge })
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
      const nowMs = this.#call.machinery.clock.now()
      this.#hedger.delay.record(nowMs, nowMs - this.first.startMs)
      if (side.hedge) this.#hedger.won(this.#delayMs)
    }
    this.#end.onVerdict(verdict)
    if (answered) this.#end.onValue(end.value)
    else this.#end.onError(end.error)
  }
}

/** Hears how one of the two ended. */
class SideListener<T> implements AttemptListener<T> {
  readonly #race: Race<T>
  readonly #side: RaceSide<T>
  #verdict: Verdict = { outcome: 'ignored', retryable: false }

  constructor(race: Race<T>, side: RaceSide<T>) {
    this.#race = race
    this.#side = side
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
}
