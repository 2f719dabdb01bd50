/** The worst state of the store among all guards, and its start. */

import type { GuardSnapshot } from 'spillway'
import { worstStore } from 'spillway/internal'
import { shown } from '../shown.js'
import type { StoreStatus } from '../wire/common-types.js'
import type { Fleet } from '../wire/fleet.js'

const MOST_PROBLEMS = 20
const DEGRADED: ReadonlySet<StoreStatus> = new Set(['unreachable', 'untrusted', 'off'])

export class StoreState {
  #status: StoreStatus = 'memory'
  #sinceAt = 0
  #problems: string[] = []

  note(guards: readonly GuardSnapshot[], at: number): void {
    const status = worstStore(guards)
    if (status !== this.#status || this.#sinceAt === 0) {
      const longest = Math.max(
        0,
        ...guards.map(({ store }) => (store?.status === status ? store.forMs : 0)),
      )
      this.#status = status
      this.#sinceAt = Math.round(at - longest)
    }
    this.#problems = guards.flatMap(({ name, store }) => {
      if (store === undefined || !DEGRADED.has(store.status)) return []
      return [store.why, store.warning].flatMap((each) =>
        each === undefined ? [] : [shown(`${name}: ${each}`)],
      )
    })
  }

  get degraded(): boolean {
    return DEGRADED.has(this.#status)
  }

  tick(): Fleet['store'] {
    return {
      status: this.#status,
      degraded: this.degraded,
      sinceAt: this.#sinceAt,
      problems: this.#problems.slice(0, MOST_PROBLEMS),
    }
  }
}
