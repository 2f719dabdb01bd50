/**
 * User limits while the store is unreachable: this pod decides, by each level's outage rule. In a
 * cluster, users may be on other nodes than the guard, so this tracks failures on its own.
 */

import { refusedByOutageRule, type SpillwayError, storeProblem } from '../../core/errors.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { shareOf } from '../../store/fleet-share.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { LevelCharge, LevelReply, LevelRequest, LevelStore } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import { Backoff } from '../outage/backoff.js'
import type { OutageRule } from '../outage/rules.js'
import type { StoreWatch } from '../outage/store-watch.js'

/** The reply if every level grants the request. */
const OPEN: LevelReply = {
  refusedBy: 0,
  waitUs: 0,
  tightest: 0,
  remaining: Number.MAX_SAFE_INTEGER,
  resetUs: 0,
  atUs: 0,
  fullAtUs: [],
}

/** The part of the watch that is used. */
export type StoreView = Pick<StoreWatch, 'status' | 'reachable' | 'fleet'> &
  Partial<
    Pick<
      StoreWatch,
      'problem' | 'whenStarted' | 'commandSent' | 'commandEnded' | 'alive' | 'failed'
    >
  >

export class OutageLevels {
  readonly #name: string
  readonly #watch: StoreView
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #local: LevelStore
  #nextRequestMs = Number.NEGATIVE_INFINITY
  #failing = false
  #lastError: unknown

  constructor(name: string, watch: StoreView, clock: Clock, random: Random) {
    this.#name = name
    this.#watch = watch
    this.#clock = clock
    this.#backoff = new Backoff(clock, random)
    this.#local = memoryStore({ clock }).levels
  }

  /** Whether to skip the store: it is unreachable, or the last command failed. */
  get inForce(): boolean {
    // During an outage the watch decides when the store is used again.
    if (!this.#watch.reachable) this.#failing = false
    return !this.#watch.reachable || this.#failing
  }

  /** Set until it is known whether the store is reachable. */
  get starting(): Promise<void> | undefined {
    return this.#watch.status === 'starting' ? this.#watch.whenStarted?.() : undefined
  }

  /** Whether to try the store now, in the background. */
  get shouldTry(): boolean {
    if (!this.#watch.reachable || this.#clock.now() < this.#nextRequestMs) return false
    this.#nextRequestMs = Number.POSITIVE_INFINITY
    return true
  }

  answered(): void {
    this.#watch.commandEnded?.()
    this.#watch.alive?.()
    if (!this.#failing) return
    this.#failing = false
    this.#backoff.found()
  }

  /** Whether such a command is in flight. */
  get trying(): boolean {
    return this.#nextRequestMs === Number.POSITIVE_INFINITY
  }

  /** A command is sent. */
  commandSent(): void {
    this.#watch.commandSent?.()
  }

  failed(error: unknown): void {
    this.#lastError = error
    this.#watch.commandEnded?.()
    // If the store is unreachable altogether, the watch knows when it is back.
    const here = error instanceof StoreFailure && error.kind === 'server'
    if (!here) this.#watch.failed?.(error)
    if (!this.#watch.reachable) return
    if (!this.#failing) this.#backoff.lost()
    this.#failing = true
    this.#nextRequestMs = this.#clock.now() + this.#backoff.nextMs()
  }

  /** Throws STORE_UNAVAILABLE if a level has the rule `refuse`. */
  charge({ levels, cost }: LevelRequest, rules: readonly OutageRule[]): LevelReply {
    if (rules.includes('refuse')) throw this.#unavailable()
    const counted = levels.flatMap((level, index) =>
      rules[index] === 'allow' ? [] : [{ index, level: this.#own(level, rules[index]) }],
    )
    if (counted.length === 0) return OPEN
    const request = { levels: counted.map(({ level }) => level), cost }
    const [reply] = this.#local.check([request]) as LevelReply[]
    const numberOf = (own: number) => (counted[own - 1]?.index ?? -1) + 1
    const { refusedBy, tightest, ...figures } = reply as LevelReply
    return { ...figures, refusedBy: numberOf(refusedBy), tightest: numberOf(tightest) }
  }

  refund({ levels, cost, atUs, fullAtUs }: LevelRequest, rules: readonly OutageRule[]): void {
    const own = levels.flatMap((level, index) =>
      rules[index] === 'allow' ? [] : [this.#own(level, rules[index])],
    )
    this.#local.refund([{ levels: own, cost, atUs, fullAtUs }])
  }

  #unavailable(): SpillwayError {
    const { reachable, problem } = this.#watch
    const known = reachable ? undefined : problem
    const why = known ?? `the store did not answer: ${storeProblem(this.#lastError)}`
    return refusedByOutageRule('user-limit', this.#name, why, 'userLimits[].outage')
  }

  #own(level: LevelCharge, rule: OutageRule | undefined): LevelCharge {
    if (rule !== 'share') return level
    const part = (units: number) => Math.max(1, shareOf(units, this.#watch.fleet))
    return { ...level, limit: part(level.limit), burst: part(level.burst) }
  }
}
