/**
 * Starts calls that have waited: not inside of whoever made way for them, but a moment later, all
 * together, and each in its own caller's async context. Otherwise a call would run under the deadline
 * of the one that freed the slot.
 */
import type { Entry } from './entry.js'

/** `A`: everything it needs. */
export interface Startable<A> extends Entry<A> {
  /** Does not throw. */
  begin(admission: A): void
}

const NOW = Promise.resolve()

export class Starter<A> {
  #ready: Startable<A>[] = []
  #admissions: A[] = []
  readonly #startAll = () => {
    const [ready, admissions] = [this.#ready, this.#admissions]
    this.#ready = []
    this.#admissions = []
    for (let index = 0; index < ready.length; index++) {
      const entry = ready[index] as Startable<A>
      entry.runInAsyncScope(entry.begin, entry, admissions[index])
    }
  }

  startSoon(entry: Startable<A>, admission: A): void {
    this.#admissions.push(admission)
    if (this.#ready.push(entry) === 1) NOW.then(this.#startAll)
  }
}
