/** Recent events on this pod that the dashboards of all pods show. */
import type { Clock } from '../../core/time/clock.js'
import type { PodNote } from './pod-status.js'

const MOST = 5
/** Long enough to reach all pods, even with late heartbeats. */
const RECENT_MS = 60_000

export class RecentNotes {
  readonly #clock: Clock
  #number = 0
  #notes: (PodNote & { atMs: number })[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(text: string): void {
    const note = { number: ++this.#number, text, atMs: this.#clock.now() }
    this.#notes = [...this.#notes, note].slice(-MOST)
  }

  recent(): readonly PodNote[] {
    if (this.#notes.length === 0) return this.#notes
    const oldestMs = this.#clock.now() - RECENT_MS
    this.#notes = this.#notes.filter(({ atMs }) => atMs > oldestMs)
    return this.#notes
  }
}
