/**
 * Starts a second attempt beside a call that takes longer than nearly all others. The first answer
 * counts, and the other attempt is aborted. This shortens the tail of a downstream that is slow at
 * random. It hurts one that is slow because it is overloaded; the budget limits that. Only for
 * calls that may be made twice.
 */
import { onAbort } from '../../core/abort.js'
import { refuse } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import {
  either,
  func,
  having,
  number,
  object,
  optional,
  text,
  validate,
} from '../../core/options/checks.js'
import { judge, type OutcomeOptions, type Verdict } from '../../core/outcome.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import { createRetryBudget, type RetryBudget } from '../retry/retry-budget.js'
import { HedgeDelay, type HedgeDelayOptions, hedgeDelayFields } from './hedge-delay.js'
import { HedgeLostError, Race, type RaceEnd, type RaceRunner, type RaceSide } from './race.js'

/** Options of `createHedge()`. */
export interface HedgeOptions extends HedgeDelayOptions {
  /** Name in events and snapshots. Default: `hedge`. */
  name?: string
  /**
   * Second attempts as a fraction of the calls, or a budget shared with retries. Range: 0 to 1. Default: 0.1.
   */
  budget?: number | RetryBudget
  /** Whether there is capacity for a second attempt now. Default: always. */
  free?: () => boolean
  /**
   * Decides the outcome of a call in place of the built-in rules; undefined keeps them. Default: by status and
   * error.
   */
  classify?: OutcomeOptions['classify']
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** What a hedged function receives. */
export interface HedgeContext {
  /** Aborted when the other attempt has answered, or when the caller aborts. */
  readonly signal: AbortSignal
  /** Whether this is the second attempt, which may use another replica. */
  readonly hedge: boolean
}

/** Options of one hedged call. */
export interface HedgeRunOptions {
  /** Aborts the call. Default: none. */
  signal?: AbortSignal
  /** False: repeating the call could do harm, so it is hedged only with a key. Default: true. */
  idempotent?: boolean
  /** A key by which the downstream recognises a repeated call. Default: none. */
  idempotencyKey?: string
}

/** Counts of a hedge. */
export interface HedgeSnapshot {
  /** Name in errors, events and snapshots. */
  name: string
  /** Delay of a second attempt that would begin now; undefined if there are too few calls. */
  delayMs: number | undefined
  /** Calls since it was created. */
  calls: number
  /** Second attempts. */
  hedges: number
  /** Second attempts that answered first. */
  won: number
}

/** Starts a second attempt beside a slow one. Created by `createHedge()`. */
export interface Hedge {
  /** Name in errors, events and snapshots. */
  readonly name: string
  /** Runs the function, and a second time if it takes long. The first good answer counts. */
  run<T>(fn: (context: HedgeContext) => T | PromiseLike<T>, options?: HedgeRunOptions): Promise<T>
  /** State and counts at this moment. */
  snapshot(): HedgeSnapshot
}

const readOptions = object({
  ...hedgeDelayFields,
  name: optional(text(), 'hedge'),
  budget: optional(
    either(
      number({ min: 0, max: 1 }),
      having<RetryBudget>('a retry budget', 'recordRequest', 'tryRetry'),
    ),
    0.1,
  ),
  free: optional(func<() => boolean>()),
  classify: optional(func<NonNullable<OutcomeOptions['classify']>>()),
  clock: clockOption,
})

/**
 * Creates a hedge, which starts a second attempt beside a slow one and uses the first answer.
 *
 * @example
 * const hedge = createHedge({ percentile: 0.95, budget: 0.05 })
 * const user = await hedge.run(({ signal }) => loadUser(id, signal))
 */
export function createHedge(options: HedgeOptions = {}): Hedge {
  const checked = validate('hedge', options, readOptions)
  const { clock, budget } = checked
  const paying = typeof budget === 'number' ? createRetryBudget({ ratio: budget, clock }) : budget
  return new LocalHedge({ ...checked, budget: paying })
}

type Settings = Omit<ReturnType<typeof readOptions>, 'budget'> & { budget: RetryBudget }

class LocalHedge implements Hedge {
  readonly name: string
  readonly settings: Settings
  readonly delay: HedgeDelay
  calls = 0
  hedges = 0
  won = 0

  constructor(settings: Settings) {
    this.name = settings.name
    this.settings = settings
    this.delay = new HedgeDelay(settings)
  }

  run<T>(
    fn: (context: HedgeContext) => T | PromiseLike<T>,
    options: HedgeRunOptions = {},
  ): Promise<T> {
    const { signal } = options
    if (signal?.aborted) return refuse(signal.reason)
    this.calls++
    const { name, budget } = this.settings
    callSafely(name, 'budget', () => budget.recordRequest(), undefined)
    return new Promise((resolve, reject) => {
      new HedgedCall(this, fn, options, resolve, reject).start()
    })
  }

  /** The budget comes last, because asking it spends. */
  mayHedge(): boolean {
    const { name, free, budget } = this.settings
    if (free !== undefined && !callSafely(name, 'free', free, false)) return this.#skip('busy')
    return callSafely(name, 'budget', () => budget.tryRetry(1), false) || this.#skip('budget')
  }

  #skip(because: 'busy' | 'budget'): false {
    if (listening()) emit({ type: 'hedge.skipped', name: this.name, because })
    return false
  }

  snapshot(): HedgeSnapshot {
    const { name, calls, hedges, won } = this
    return { name, delayMs: this.delay.delayMs(this.settings.clock.now()), calls, hedges, won }
  }
}

class HedgedCall<T> implements RaceRunner<T> {
  readonly #hedge: LocalHedge
  readonly #fn: (context: HedgeContext) => T | PromiseLike<T>
  readonly #options: HedgeRunOptions
  readonly #resolve: (value: T) => void
  readonly #reject: (error: unknown) => void
  readonly #race = new Race<T>(this)
  readonly #controllers = new Map<RaceSide<T>, AbortController>()
  #startMs = 0
  #delayMs = 0
  #timer: Timer | undefined
  #forget: (() => void) | undefined

  constructor(
    hedge: LocalHedge,
    fn: (context: HedgeContext) => T | PromiseLike<T>,
    options: HedgeRunOptions,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#hedge = hedge
    this.#fn = fn
    this.#options = options
    this.#resolve = resolve
    this.#reject = reject
  }

  start(): void {
    const { settings, delay } = this.#hedge
    const { signal, idempotent, idempotencyKey } = this.#options
    this.#startMs = settings.clock.now()
    this.#run(this.#race.first)
    if (signal !== undefined) this.#forget = onAbort(signal, () => this.#abort(signal.reason))
    if (idempotent === false && !idempotencyKey) return
    const delayMs = delay.delayMs(this.#startMs)
    if (delayMs === undefined || this.#race.over) return
    this.#delayMs = delayMs
    this.#timer = settings.clock.schedule(delayMs, () => this.#second())
  }

  #second(): void {
    const { name } = this.#hedge
    if (this.#race.over || this.#race.first.end !== undefined || !this.#hedge.mayHedge()) return
    this.#hedge.hedges++
    if (listening()) emit({ type: 'hedge.started', name, delayMs: this.#delayMs })
    this.#run(this.#race.join())
  }

  async #run(side: RaceSide<T>): Promise<void> {
    const controller = new AbortController()
    this.#controllers.set(side, controller)
    try {
      const value = await this.#fn({ signal: this.#signalFor(controller), hedge: side.hedge })
      this.#ended(side, { value })
    } catch (error) {
      this.#ended(side, { error })
    }
  }

  /**
   * A body that is still being read when the race is decided keeps following the caller's signal.
   */
  #signalFor({ signal: own }: AbortController): AbortSignal {
    const { signal } = this.#options
    return signal === undefined ? own : AbortSignal.any([signal, own])
  }

  #ended(side: RaceSide<T>, end: RaceEnd<T>): void {
    this.#race.ended(side, end, this.#judge(end))
  }

  #judge(end: RaceEnd<T>): Verdict {
    const { classify, name, clock } = this.#hedge.settings
    const judging = { name, wallMs: clock.wallMs(), ...(classify && { classify }) }
    return judge({ ...end, signal: this.#options.signal }, judging)
  }

  breakOff(side: RaceSide<T>): void {
    this.#controllers.get(side)?.abort(new HedgeLostError())
  }

  onDecided(side: RaceSide<T>, end: RaceEnd<T>): void {
    const { delay, settings } = this.#hedge
    this.#timer?.cancel()
    const nowMs = settings.clock.now()
    const answered = 'value' in end
    if (answered) delay.record(nowMs, nowMs - this.#startMs)
    if (answered && side.hedge) this.#noteWin()
    if (answered) this.#resolve(end.value)
    else this.#reject(end.error)
    this.#forget?.()
  }

  #noteWin(): void {
    const { name } = this.#hedge
    this.#hedge.won++
    if (listening()) emit({ type: 'hedge.won', name, delayMs: this.#delayMs })
  }

  #abort(reason: unknown): void {
    this.#timer?.cancel()
    if (this.#race.over) return
    this.#race.abandon()
    this.#reject(reason)
  }
}
