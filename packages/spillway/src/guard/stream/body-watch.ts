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
  /** Somebody passes it on, and says so when it rests: it is not unread before. */
  attended: boolean
  onFirstChunk(): void
  onChunk(chunk: unknown): void
  /** Once. The error is what the reader was told, if anything. */
  onEnd(how: BodyEnd, error: unknown): void
}

export class BodyWatch {
  /**
   * Nothing, once it is over. A response outlives its call: whoever got it may keep it, and Node holds
   * it weakly, which only a full collection heeds. All that the call has kept should not wait for that.
   */
  #options: BodyWatchOptions | undefined
  readonly #unread: LazyAlarm
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
    const options = this.#options as BodyWatchOptions
    this.#breakOff = breakOff
    this.#isReadUnseen = isReadUnseen
    options.timed.onGiveUp = (error) => this.#givenUp(error)
    if (!options.attended) this.#waitForReader(options)
  }

  /** Somebody waits for the next chunk. */
  reading(): void {
    if (this.#options === undefined) return
    this.#unread.clear()
    this.#options.timed.expect(this.#begun ? 'idle' : 'firstByte')
  }

  chunk(chunk: unknown): void {
    const options = this.#options
    if (options === undefined) return
    options.timed.heard()
    options.onChunk(chunk)
    if (!this.#begun) {
      this.#begun = true
      options.onFirstChunk()
    }
    if (!options.attended) this.#waitForReader(options)
  }

  /** Nobody waits for the next chunk; silence does not count. */
  resting(): void {
    if (this.#options === undefined) return
    this.#options.timed.heard()
    this.#waitForReader(this.#options)
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
    if (this.#options?.timed.givenUp === false) this.#end('abandoned', undefined)
  }

  #waitForReader({ unreadMs }: BodyWatchOptions): void {
    this.#unread.set(unreadMs, this.#letGo)
  }

  // Made once, not for every chunk.
  readonly #letGo = (): void => {
    if (this.#options === undefined || this.#isReadUnseen()) return
    const { unreadMs, name, timed } = this.#options
    timed.giveUp(unreadError(name, unreadMs))
  }

  /** A timeout, no reader, the caller, or the end of the guard. */
  #givenUp(error: unknown): void {
    const breakOff = this.#breakOff
    this.#end(howGivenUp(error), error)
    breakOff?.(error)
  }

  #end(how: BodyEnd, error: unknown): void {
    const options = this.#options
    if (options === undefined) return
    this.#options = undefined
    this.#breakOff = undefined
    this.#unread.close()
    options.timed.end()
    options.onEnd(how, error)
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
