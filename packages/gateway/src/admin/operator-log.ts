/**
 * Logs operator actions that were made elsewhere: with the command line, which writes to the store directly, or
 * through another gateway. Actions through this gateway are logged when they are made.
 */
import type { Clock, Operator } from 'spillway'
import type { Timer } from 'spillway/internal'

/** Often enough to miss no action: the store keeps each for a minute. */
const EVERY_MS = 5_000

export class OperatorLog {
  readonly #operator: () => Pick<Operator, 'recent'>
  readonly #log: (facts: object) => void
  #logged = new Set<string>()
  readonly #clock: Clock
  #timer: Timer | undefined
  #isReading = false

  constructor(
    operator: () => Pick<Operator, 'recent'>,
    log: (facts: object) => void,
    clock: Clock,
  ) {
    this.#operator = operator
    this.#log = log
    this.#clock = clock
  }

  begin(): void {
    this.#timer = this.#clock.schedule(EVERY_MS, () => {
      this.begin()
      void this.read()
    })
    this.#timer.unref()
  }

  close(): void {
    this.#timer?.cancel()
  }

  async read(): Promise<void> {
    // Two reads at once would report an action twice.
    if (this.#isReading) return
    this.#isReading = true
    const recent = await this.#operator()
      .recent()
      // The next round reads it again.
      .catch(() => undefined)
    this.#isReading = false
    if (recent === undefined) return
    for (const { id, own, guard: name, ageMs, ...facts } of recent) {
      if (own || this.#logged.has(id)) continue
      this.#log({ name, ...facts, ageMs: Math.round(ageMs) })
    }
    this.#logged = new Set(recent.map(({ id }) => id))
  }
}
