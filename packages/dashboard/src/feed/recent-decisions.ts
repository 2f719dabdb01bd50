/**
 * Decisions of other processes: workers of this gateway and other pods. A decision may arrive on both ways, so
 * duplicates are dropped. Kept for readers that connect later.
 */
import type { Decision } from '../wire/decisions.js'

const MOST_KEPT = 100
const MOST_REMEMBERED = 4_000

export class RecentDecisions {
  #kept: { readonly at: number; readonly record: Decision }[] = []
  readonly #known = new Set<string>()

  /** `at`: the time of day. Returns the new ones. */
  add(records: readonly Decision[], at: number): Decision[] {
    const fresh = records.filter((record) => this.#remember(`${record.pod} ${record.id}`))
    const added = fresh.map((record) => ({ at, record }))
    this.#kept = [...this.#kept, ...added].slice(-MOST_KEPT)
    return fresh
  }

  /** Decisions that arrived after this time of day, oldest first. */
  since(at: number): Decision[] {
    return this.#kept.filter((each) => each.at > at).map(({ record }) => record)
  }

  #remember(key: string): boolean {
    if (this.#known.has(key)) return false
    this.#known.add(key)
    if (this.#known.size > MOST_REMEMBERED) {
      const [oldest] = this.#known
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return true
  }
}
