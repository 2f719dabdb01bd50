/**
 * Standard output, many lines at a time. They are put together here: the destination measures all it has
 * again for each line that it is given. Whatever ends the process, what was written before is not lost.
 */
import { destination } from 'pino'

/** Lines are written together; at the latest so often. */
const TOGETHER_CHARACTERS = 32_768
const FLUSH_MS = 200

/** Those that are not closed when the process ends. */
const open = new Set<Lines>()
let watching = false

export class Lines {
  readonly #out = destination({ dest: 1, sync: false })
  readonly #flushing: NodeJS.Timeout
  /** Others may have something to write first. */
  readonly #beforeEnd: () => void
  #waiting = ''

  constructor(beforeEnd: () => void) {
    this.#beforeEnd = beforeEnd
    this.#flushing = setInterval(() => this.flush(), FLUSH_MS).unref()
    open.add(this)
    if (watching) return
    watching = true
    process.once('exit', () => {
      for (const each of open) each.close()
    })
  }

  write(line: string): void {
    this.#waiting += line
    if (this.#waiting.length >= TOGETHER_CHARACTERS) this.flush()
    else if (!open.has(this)) this.#end()
  }

  flush(): void {
    const lines = this.#waiting
    if (lines === '') return
    this.#waiting = ''
    this.#out.write(lines)
  }

  close(): void {
    clearInterval(this.#flushing)
    this.#beforeEnd()
    this.#end()
    open.delete(this)
  }

  #end(): void {
    this.flush()
    try {
      this.#out.flushSync()
    } catch {
      // Nothing was ever written, or nobody reads it any more.
    }
  }
}
