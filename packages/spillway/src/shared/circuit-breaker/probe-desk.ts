/**
 * Requests probes of a half-open breaker from the store. One round trip at a time serves all calls
 * that want one. When all probes of the fleet are taken, no call asks again for a moment.
 */

import { isThenable } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { MaybePromise, ProbeReply } from '../../store/port.js'

export interface ProbeDeskOptions {
  clock: Clock
  /** The prefix that makes the names of probes unique. */
  pod: string
  /** Probes at once in the whole fleet. */
  places: number
  /** A probe that runs longer returns its permit and counts as nothing. */
  maxProbeMs: number
  /** A probe has run for `maxProbeMs`. */
  onOverdue(name: string): void
  take(names: readonly string[]): MaybePromise<ProbeReply>
}

/** A probe by name, or the reason why there is none; `elsewhere`: the breaker is not half-open any more. */
export type ProbeAnswer = { name: string; generation: number } | 'full' | 'elsewhere' | 'unknown'

/** After all probes were taken, the store is not asked again before this. */
const FULL_MS = 20

export class ProbeDesk {
  readonly #options: ProbeDeskOptions
  #number = 0
  #underWay = false
  #askers: ((answer: ProbeAnswer) => void)[] = []
  #fullUntilMs = Number.NEGATIVE_INFINITY
  /** Running probes of this pod, and the timers that end them. */
  readonly #probes = new Map<string, Timer>()

  constructor(options: ProbeDeskOptions) {
    this.#options = options
  }

  /** Answers synchronously if it can. */
  ask(): MaybePromise<ProbeAnswer> {
    if (this.#options.clock.now() < this.#fullUntilMs) return 'full'
    let answer: ProbeAnswer | undefined
    let tell = (each: ProbeAnswer) => {
      answer = each
    }
    this.#askers.push((each) => tell(each))
    this.#go()
    if (answer !== undefined) return answer
    return new Promise((resolve) => {
      tell = resolve
    })
  }

  /** Unique names for this number of probes. */
  names(count: number): string[] {
    return Array.from({ length: count }, () => `${this.#options.pod}:${++this.#number}`)
  }

  /** Starts to keep a probe alive, until it ends or has run for `maxProbeMs`. */
  adopt(name: string): void {
    const { clock, maxProbeMs, onOverdue } = this.#options
    const timer = clock.schedule(maxProbeMs, () => {
      if (this.end(name)) onOverdue(name)
    })
    timer.unref()
    this.#probes.set(name, timer)
  }

  /** Whether it was a probe of this pod that still counted. */
  end(name: string): boolean {
    this.reopen()
    this.#probes.get(name)?.cancel()
    return this.#probes.delete(name)
  }

  /** Cancels the timers of running probes. */
  close(): void {
    for (const timer of this.#probes.values()) timer.cancel()
  }

  /** Probes may be free again. */
  reopen(): void {
    this.#fullUntilMs = Number.NEGATIVE_INFINITY
  }

  /** No call asks, and no probe is running. */
  get isIdle(): boolean {
    return !this.#underWay && this.#probes.size === 0
  }

  /** The names of the running probes. */
  get running(): string[] {
    return [...this.#probes.keys()]
  }

  #go(): void {
    if (this.#underWay || this.#askers.length === 0) return
    const askers = this.#askers.splice(0)
    const names = this.names(Math.min(askers.length, this.#options.places))
    this.#underWay = true
    let reply: MaybePromise<ProbeReply>
    try {
      reply = this.#options.take(names)
    } catch {
      return this.#failed(askers)
    }
    if (!isThenable(reply)) return this.#answered(askers, names, reply)
    reply.then(
      (each) => this.#answered(askers, names, each),
      () => this.#failed(askers),
    )
  }

  #answered(
    askers: ((answer: ProbeAnswer) => void)[],
    names: readonly string[],
    { granted, view }: ProbeReply,
  ): void {
    this.#underWay = false
    const nowMs = this.#options.clock.now()
    const { generation } = view
    for (const name of names.slice(0, granted)) {
      this.adopt(name)
      askers.shift()?.({ name, generation })
    }
    const full = view.kind === 2
    if (full && askers.length > 0) this.#fullUntilMs = nowMs + FULL_MS
    // Calls that asked meanwhile would get the same answer.
    const rest = full && askers.length > 0 ? [...askers, ...this.#askers.splice(0)] : askers
    for (const tell of rest) tell(full ? 'full' : 'elsewhere')
    this.#go()
  }

  /** The store may have granted probes; their leases are not renewed. */
  #failed(askers: readonly ((answer: ProbeAnswer) => void)[]): void {
    this.#underWay = false
    for (const tell of askers) tell('unknown')
    this.#go()
  }
}
