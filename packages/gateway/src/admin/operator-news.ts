/**
 * Lines in the log for what operators did elsewhere: from the command line, which goes straight to the store, or through
 * another gateway. What was done here has been told already.
 */
import type { Operator } from 'spillway'

/** Often enough to hear of everything: the store knows it for a minute. */
const EVERY_MS = 5_000

export class OperatorNews {
  readonly #operator: () => Pick<Operator, 'recent'>
  readonly #tell: (facts: object) => void
  #heard = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #looking = false

  constructor(operator: () => Pick<Operator, 'recent'>, tell: (facts: object) => void) {
    this.#operator = operator
    this.#tell = tell
  }

  begin(): void {
    this.#timer = setInterval(() => void this.look(), EVERY_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async look(): Promise<void> {
    // Two answers at once would be told twice.
    if (this.#looking) return
    this.#looking = true
    const recent = await this.#operator()
      .recent()
      // The next time.
      .catch(() => undefined)
    this.#looking = false
    if (recent === undefined) return
    for (const { id, own, guard: name, ageMs, ...facts } of recent) {
      if (own || this.#heard.has(id)) continue
      this.#tell({ name, ...facts, ageMs: Math.round(ageMs) })
    }
    this.#heard = new Set(recent.map(({ id }) => id))
  }
}
