/**
 * Standard output, many lines at a time. They are put together here: the destination measures all it has
 * again for each line that it is given.
 */
import { destination } from 'pino'

/** Lines are written together; at the latest so often. */
const TOGETHER_CHARACTERS = 32_768
const FLUSH_MS = 200

export class Lines {
  readonly #out = destination({ dest: 1, sync: false })
  readonly #flushing: NodeJS.Timeout
  #waiting = ''

  constructor() {
    this.#flushing = setInterval(() => this.#flush(), FLUSH_MS).unref()
  }

  write(line: string): void {
    this.#waiting += line
    if (this.#waiting.length >= TOGETHER_CHARACTERS) this.#flush()
  }

  close(): void {
    clearInterval(this.#flushing)
    this.#flush()
    try {
      this.#out.flushSync()
    } catch {
      // Nothing was ever written, or nobody reads it any more.
    }
  }

  #flush(): void {
    const lines = this.#waiting
    if (lines === '') return
    this.#waiting = ''
    this.#out.write(lines)
  }
}
