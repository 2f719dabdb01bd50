/**
 * Where calls ask for a probe while the breaker is half-open. One trip at a time carries everybody
 * who asks; when all places in the fleet are taken, nobody asks again for a moment.
 */
import type { Clock } from '../../core/clock.js'
import { isThenable } from '../../core/thenable.js'
import type { MaybePromise, ProbeReply } from '../../store/port.js'

export interface ProbeDeskOptions {
  clock: Clock
  /** Goes before the number of a probe, and makes its name unlike any other. */
  pod: string
  /** Places in the whole fleet. */
  places: number
  take(names: readonly string[]): MaybePromise<ProbeReply>
}

/** A probe by name, or no place; `elsewhere`: the breaker is not half-open any more. */
export type ProbeAnswer = { name: string; generation: number } | 'full' | 'elsewhere' | 'unknown'

/** All places were taken: no need to ask again before this. */
const FULL_MS = 20

export class ProbeDesk {
  readonly #options: ProbeDeskOptions
  #number = 0
  #underWay = false
  #askers: ((answer: ProbeAnswer) => void)[] = []
  #fullUntilMs = Number.NEGATIVE_INFINITY
  /** Probes under way, and since when. */
  readonly #probes = new Map<string, number>()

  constructor(options: ProbeDeskOptions) {
    this.#options = options
  }

  /** Answers at once if it can. */
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

  /** Names for so many probes, unlike any others. */
  names(count: number): string[] {
    return Array.from({ length: count }, () => `${this.#options.pod}:${++this.#number}`)
  }

  /** A probe that was taken elsewhere: it is kept alive here. */
  adopt(name: string): void {
    this.#probes.set(name, this.#options.clock.now())
  }

  /** Answers whether it was one of ours that still counted. */
  end(name: string): boolean {
    this.reopen()
    return this.#probes.delete(name)
  }

  /** Places may be free again. */
  reopen(): void {
    this.#fullUntilMs = Number.NEGATIVE_INFINITY
  }

  /** Nobody asks, and no probe is under way. */
  get isIdle(): boolean {
    return !this.#underWay && this.#probes.size === 0
  }

  /** Those under way for less than so long. The others count no more. */
  youngerThan(ageMs: number): string[] {
    const oldestMs = this.#options.clock.now() - ageMs
    for (const [name, sinceMs] of this.#probes) {
      if (sinceMs <= oldestMs) this.#probes.delete(name)
    }
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
      this.#probes.set(name, nowMs)
      askers.shift()?.({ name, generation })
    }
    const full = view.kind === 2
    if (full && askers.length > 0) this.#fullUntilMs = nowMs + FULL_MS
    // Whoever came meanwhile would hear the same.
    const rest = full && askers.length > 0 ? [...askers, ...this.#askers.splice(0)] : askers
    for (const tell of rest) tell(full ? 'full' : 'elsewhere')
    this.#go()
  }

  /** Whether a place was taken nobody knows; nobody will renew it. */
  #failed(askers: readonly ((answer: ProbeAnswer) => void)[]): void {
    this.#underWay = false
    for (const tell of askers) tell('unknown')
    this.#go()
  }
}
