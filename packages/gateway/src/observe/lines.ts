/**
 * Standard output, many lines at a time. They are put together here: the destination measures all it has
 * again for each line that it is given. Whatever ends the process, what was written before is not lost.
 */
import { writeSync } from 'node:fs'
import { destination } from 'pino'

/** Lines are written together; at the latest so often. */
const TOGETHER_CHARACTERS = 32_768
const FLUSH_MS = 200

const STANDARD_OUTPUT = 1
/** So long a process that ends waits for a reader of its log that does not read. */
const LAST_WORDS_MS = 1000
const TRY_AGAIN_MS = 10

/** Those that are not closed when the process ends. */
const open = new Set<Lines>()
let watching = false

export class Lines {
  readonly #out = destination({ dest: STANDARD_OUTPUT, sync: false })
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
    else if (!open.has(this)) this.flushNow()
  }

  flush(): void {
    const lines = this.#waiting
    if (lines === '') return
    this.#waiting = ''
    this.#out.write(lines)
  }

  /** Before this returns: a write that is only begun is lost when the process ends now. */
  flushNow(): void {
    this.#beforeEnd()
    const lines = this.#waiting
    this.#waiting = ''
    try {
      this.#out.flushSync()
    } catch {
      // It was ended, or nobody reads it any more.
    }
    writeNow(lines)
  }

  close(): void {
    clearInterval(this.#flushing)
    this.flushNow()
    open.delete(this)
  }
}

/** All of it, unless nobody takes it. */
function writeNow(text: string): void {
  let rest = Buffer.from(text)
  const giveUpAt = performance.now() + LAST_WORDS_MS
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STANDARD_OUTPUT, rest))
    } catch (error) {
      const full = (error as NodeJS.ErrnoException).code === 'EAGAIN'
      if (!full || performance.now() > giveUpAt) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
    }
  }
}
