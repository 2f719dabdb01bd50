/**
 * Writes to standard output in batches and without waiting. If the reader of the log is slow or has ended,
 * or its disk is full, requests are not delayed: lines are dropped, and the log reports how many.
 * When the process ends, pending lines are written first.
 */
import { write, writeSync } from 'node:fs'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'

/** Lines are written in batches of at least this size, or after `FLUSH_MS`. */
const BATCH_CHARACTERS = 32_768
const FLUSH_MS = 200
/** Buffered bytes beyond this are dropped. */
const MOST_WAITING_CHARACTERS = 16 * 1_048_576

/** Longest time that an ending process waits for a reader of its log that has stalled. */
const EXIT_WAIT_MS = 1_000
const TRY_AGAIN_MS = 10
const WARN = 40
/** A pipe takes this many bytes in one piece (PIPE_BUF on Linux; other systems guarantee at least 512). */
const ATOMIC_BYTES = 4_096

/** Logs that are not closed when the process ends. */
const open = new Set<Lines>()
let watching = false

type LinesClock = Pick<Clock, 'now' | 'wallMs' | 'schedule'>

export class Lines {
  /** Non-blocking, as Node opens it, so that a pipe without a reader does not block the process. */
  readonly #fd = process.stdout.fd
  /** Whether other processes write to the same pipe, so that lines must not be split. */
  readonly #isShared: boolean
  readonly #clock: LinesClock
  #flushing: Timer
  #waiting = ''
  /** Start of the current write, if one is in progress. */
  #writingMs: number | undefined
  #lost = 0

  constructor({
    isShared = false,
    clock = systemClock,
  }: { isShared?: boolean; clock?: LinesClock } = {}) {
    this.#isShared = isShared
    this.#clock = clock
    this.#flushing = this.#flushLater()
    open.add(this)
    if (watching) return
    watching = true
    process.once('exit', () => {
      for (const each of open) each.close()
    })
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > MOST_WAITING_CHARACTERS) {
      this.#lost++
      return
    }
    this.#waiting += line
    if (!open.has(this)) this.#flushNow()
    else if (this.#waiting.length >= BATCH_CHARACTERS) this.flush()
  }

  /** Writes buffered lines, unless a write is in progress. */
  flush(): void {
    if (this.#writingMs !== undefined) return
    const lines = this.#take()
    if (lines.length === 0) return
    this.#writingMs = this.#clock.now()
    this.#writeOn(lines)
  }

  close(): void {
    this.#flushing.cancel()
    this.#flushNow()
    open.delete(this)
  }

  #flushLater(): Timer {
    const timer = this.#clock.schedule(FLUSH_MS, () => {
      this.flush()
      this.#flushing = this.#flushLater()
    })
    timer.unref()
    return timer
  }

  /** Before this returns: a write that is only begun may be lost when the process ends. */
  #flushNow(): void {
    const nowMs = this.#clock.now()
    const waitedMs = nowMs - (this.#writingMs ?? nowMs)
    // A reader that accepted nothing for this long gets no more time. A process that was busy in between makes at
    // least one more attempt.
    const patienceMs = Math.max(0, EXIT_WAIT_MS - waitedMs)
    writeNow(this.#fd, this.#take(), patienceMs, (bytes) => this.#pieceOf(bytes))
  }

  #take(): Buffer {
    if (this.#lost > 0) {
      const facts = { level: WARN, time: this.#clock.wallMs(), msg: 'lines of this log are lost' }
      this.#waiting += `${JSON.stringify({ ...facts, lines: this.#lost })}\n`
      this.#lost = 0
    }
    const lines = Buffer.from(this.#waiting)
    this.#waiting = ''
    return lines
  }

  /** The part to write next. */
  #pieceOf(bytes: Buffer): Buffer {
    return this.#isShared ? wholeLines(bytes) : bytes
  }

  #writeOn(bytes: Buffer): void {
    write(this.#fd, this.#pieceOf(bytes), (error, written) => {
      const rest = error === null ? bytes.subarray(written) : bytes
      if (isFull(error)) {
        this.#clock.schedule(TRY_AGAIN_MS, () => this.#writeOn(rest)).unref()
        return
      }
      if (error !== null) this.#lost += linesIn(rest)
      else if (rest.length > 0) return this.#writeOn(rest)
      this.#writingMs = undefined
      if (this.#waiting.length >= BATCH_CHARACTERS) this.flush()
    })
  }
}

/**
 * As many whole lines as a pipe accepts atomically, so that lines of several processes do not mix. A longer line is
 * written alone.
 */
export function wholeLines(bytes: Buffer): Buffer {
  if (bytes.length <= ATOMIC_BYTES) return bytes
  const last = bytes.subarray(0, ATOMIC_BYTES).lastIndexOf(0x0a)
  const end = last === -1 ? bytes.indexOf(0x0a) : last
  return end === -1 ? bytes : bytes.subarray(0, end + 1)
}

/**
 * Writes everything, or gives up after waiting this long for a reader. It blocks the process, so it uses the real
 * time: no injected clock advances.
 */
function writeNow(
  fd: number,
  bytes: Buffer,
  patienceMs: number,
  pieceOf: (bytes: Buffer) => Buffer,
): void {
  let rest = bytes
  let giveUpAt = performance.now() + patienceMs
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, pieceOf(rest)))
      // A slow reader that keeps reading gets everything.
      giveUpAt = performance.now() + EXIT_WAIT_MS
    } catch (error) {
      if (!isFull(error) || performance.now() > giveUpAt) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
    }
  }
}

/** The pipe is full; its reader may make room. */
function isFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === 'EAGAIN'
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (const byte of bytes) if (byte === 0x0a) lines++
  return lines
}
