/**
 * A body on its way from the downstream to its reader. The call it belongs to is over when the body
 * is: complete, cut, stalled, left by its reader, or aborted. Nothing is buffered; silence counts only
 * while somebody reads, and a body nobody reads is let go.
 */
import type { Clock } from '../../core/clock.js'
import { type Details, inMs, SpillwayError } from '../../core/errors.js'
import { LazyAlarm } from '../../core/lazy-alarm.js'
import type { TimedCall } from '../../local/timed-call.js'

/** How a body ended. */
export type BodyEnd =
  | 'complete'
  /** The downstream broke off. */
  | 'truncated'
  /** It fell silent while somebody was reading. */
  | 'stalled'
  /** Nobody read it, or its reader had enough. */
  | 'abandoned'
  /** The caller aborted, or its deadline passed. */
  | 'aborted'

export interface BodyWatchOptions {
  name: string
  clock: Clock
  timed: TimedCall<unknown>
  /** A body nobody has read for so long is let go. */
  unreadMs: number
  onFirstChunk(): void
  onChunk(chunk: unknown): void
  /** Once. The error is what the reader was told, if anything. */
  onEnd(how: BodyEnd, error: unknown): void
}

export class BodyWatch {
  readonly #options: BodyWatchOptions
  readonly #unread: LazyAlarm
  #over = false
  #begun = false
  /** Breaks the reader's side off, and the downstream's. */
  #breakOff: ((error: unknown) => void) | undefined
  #isReadUnseen: () => boolean = never

  constructor(options: BodyWatchOptions) {
    this.#options = options
    this.#unread = new LazyAlarm(options.clock)
  }

  /**
   * From now on it is watched. `isReadUnseen` is asked before it is let go because nobody reads it, and
   * if so reports how it ends.
   */
  begin(breakOff: (error: unknown) => void, isReadUnseen = never): void {
    this.#breakOff = breakOff
    this.#isReadUnseen = isReadUnseen
    this.#options.timed.onGiveUp = (error) => this.#givenUp(error)
    this.#waitForReader()
  }

  /** Somebody waits for the next chunk. */
  reading(): void {
    if (this.#over) return
    this.#unread.clear()
    this.#options.timed.expect(this.#begun ? 'idle' : 'firstByte')
  }

  chunk(chunk: unknown): void {
    if (this.#over) return
    this.#options.timed.heard()
    this.#options.onChunk(chunk)
    if (!this.#begun) {
      this.#begun = true
      this.#options.onFirstChunk()
    }
    this.#waitForReader()
  }

  /** Nobody waits for the next chunk; silence does not count. */
  resting(): void {
    if (this.#over) return
    this.#options.timed.heard()
    this.#waitForReader()
  }

  complete(): void {
    this.#end('complete', undefined)
  }

  truncated(error: unknown): void {
    this.#end('truncated', error)
  }

  /** The reader does not want the rest. */
  left(): void {
    // Once given up it is not the reader who leaves: a fetch that is aborted cancels its own body.
    if (!this.#options.timed.givenUp) this.#end('abandoned', undefined)
  }

  #waitForReader(): void {
    this.#unread.set(this.#options.unreadMs, this.#letGo)
  }

  // Made once, not for every chunk.
  readonly #letGo = (): void => {
    const { unreadMs, name, timed } = this.#options
    if (!this.#isReadUnseen()) timed.giveUp(unreadError(name, unreadMs))
  }

  /** A timeout, no reader, the caller, or the end of the guard. */
  #givenUp(error: unknown): void {
    this.#end(howGivenUp(error), error)
    this.#breakOff?.(error)
  }

  #end(how: BodyEnd, error: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#unread.close()
    this.#options.timed.end()
    this.#options.onEnd(how, error)
  }
}

const never = () => false

function howGivenUp(error: unknown): BodyEnd {
  if (!(error instanceof SpillwayError) || error.code !== 'CALL_TIMEOUT') return 'aborted'
  return error.details.kind === 'unread' ? 'abandoned' : 'stalled'
}

function unreadError(name: string, unreadMs: number): SpillwayError {
  return new SpillwayError({
    code: 'CALL_TIMEOUT',
    stage: 'timeout',
    scope: 'local',
    details: { name, kind: 'unread', limitMs: unreadMs },
    explain: explainUnread,
  })
}

function explainUnread({ name, limitMs }: Details): string {
  return `${name}: nobody read the answer for ${inMs(limitMs)}, so it was let go`
}
