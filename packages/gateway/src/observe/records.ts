/**
 * Requests that are over, told a few at a time: to write a line right after another costs a processor less
 * than to turn to it in the middle of other requests.
 */
import type { RequestRecord } from '../data/record.js'

const TOGETHER = 64
/** Lines leave more rarely than that. */
const LATEST_MS = 50

export class Records {
  readonly #tell: (record: RequestRecord, atMs: number) => void
  #waiting: { record: RequestRecord; atMs: number }[] = []
  #timer: NodeJS.Timeout | undefined

  /** `atMs`: the time of day when it was over. */
  constructor(tell: (record: RequestRecord, atMs: number) => void) {
    this.#tell = tell
  }

  add(record: RequestRecord): void {
    this.#waiting.push({ record, atMs: Date.now() })
    if (this.#waiting.length >= TOGETHER) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), LATEST_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    for (const { record, atMs } of waiting) this.#tell(record, atMs)
  }
}
