/** Records the result of every reload, for operators and metrics. */
import type { Clock } from 'spillway'
import type { Changes } from './changes.js'

/** Result of a reload. */
export type ReloadReport =
  | ({ readonly result: 'applied'; readonly generation: number } & Changes)
  | { readonly result: 'unchanged'; readonly afterRestart: readonly string[] }
  /** The old configuration stays. */
  | { readonly result: 'refused'; readonly reason: string }

export interface ReloadStatus {
  /** 1 for the configuration it started with. */
  readonly generation: number
  /** When the active configuration took effect. */
  readonly since: string
  /** Changed options that need a restart to take effect. */
  readonly afterRestart: readonly string[]
  /** The last refused configuration, unless one was accepted after it. */
  readonly refused: { readonly at: string; readonly reason: string } | undefined
}

export class Reloads {
  readonly counts = { applied: 0, unchanged: 0, refused: 0 }
  readonly #clock: Pick<Clock, 'wallMs'>
  #generation = 1
  #sinceMs: number
  #afterRestart: readonly string[] = []
  #refused: ReloadStatus['refused']

  constructor(clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock
    this.#sinceMs = clock.wallMs()
  }

  get generation(): number {
    return this.#generation
  }

  /** In seconds, as usual in Prometheus. */
  get since(): number {
    return this.#sinceMs / 1_000
  }

  get refusedLast(): boolean {
    return this.#refused !== undefined
  }

  applied(changes: Changes): ReloadReport {
    this.#accepted('applied', changes.afterRestart)
    this.#generation++
    this.#sinceMs = this.#clock.wallMs()
    return { result: 'applied', generation: this.#generation, ...changes }
  }

  unchanged({ afterRestart }: Changes): ReloadReport {
    this.#accepted('unchanged', afterRestart)
    return { result: 'unchanged', afterRestart }
  }

  refused(reason: string): ReloadReport {
    this.counts.refused++
    this.#refused = { at: new Date(this.#clock.wallMs()).toISOString(), reason }
    return { result: 'refused', reason }
  }

  status(): ReloadStatus {
    return {
      generation: this.#generation,
      since: new Date(this.#sinceMs).toISOString(),
      afterRestart: this.#afterRestart,
      refused: this.#refused,
    }
  }

  #accepted(result: 'applied' | 'unchanged', afterRestart: readonly string[]): void {
    this.counts[result]++
    this.#afterRestart = afterRestart
    this.#refused = undefined
  }
}
