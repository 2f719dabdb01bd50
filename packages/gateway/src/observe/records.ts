/**
 * Records of requests that are over, told a few at a time. To count one and to write its line takes a
 * processor several times as long in the middle of other requests as right after another record.
 */
import type { RequestRecord } from '../data/record.js'

const TOGETHER = 64
/** Nobody notices. */
const LATEST_MS = 10

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
    else this.#timer ??= setTimeout(() => this.flush(), LATEST_MS)
  }

  /** For whoever is about to look. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    for (const { record, atMs } of waiting) this.#tell(record, atMs)
  }
}
