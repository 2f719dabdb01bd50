/**
 * Lines in the log for what operators did elsewhere: from the command line, which goes straight to the store, or through
 * another gateway. What was done here has been told already.
 */
import type { Clock, Operator } from 'spillway'
import type { Timer } from 'spillway/internal'

/** Often enough to miss no action: the store keeps each for a minute. */
const EVERY_MS = 5_000

export class OperatorNews {
  readonly #operator: () => Pick<Operator, 'recent'>
  readonly #tell: (facts: object) => void
  #heard = new Set<string>()
  readonly #clock: Clock
  #timer: Timer | undefined
  #looking = false

  constructor(
    operator: () => Pick<Operator, 'recent'>,
    tell: (facts: object) => void,
    clock: Clock,
  ) {
    this.#operator = operator
    this.#tell = tell
    this.#clock = clock
  }

  begin(): void {
    this.#timer = this.#clock.schedule(EVERY_MS, () => {
      this.begin()
      void this.look()
    })
    this.#timer.unref()
  }

  close(): void {
    this.#timer?.cancel()
  }

  async look(): Promise<void> {
    // Two reads at once would report an action twice.
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
