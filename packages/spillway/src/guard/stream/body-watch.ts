/**
 * A body on its way from the downstream to its reader. The call it belongs to is over when the body
 * is: complete, cut, stalled, left by its reader, or aborted. Nothing is buffered; silence counts only
 * while somebody reads, and a body nobody reads is let go.
 */
import { type Details, inMs, SpillwayError } from '../../core/errors.js'
import type { Timed, TimerList } from '../../core/timer-list.js'
import type { ComingBody, TimedCall } from '../../local/timed-call.js'

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

/** Whoever wants to know what becomes of it. */
export interface BodyListener {
  onFirstChunk(): void
  onChunk(chunk: unknown): void
  /** Once. The error is what the reader was told, if anything. */
  onEnd(how: BodyEnd, error: unknown): void
}

/** The body itself, as its watch sees it. */
export interface WatchedBody {
  /** It is over: breaks the reader's side off, and the downstream's. */
  breakOff(error: unknown): void
  /**
   * Asked before it is let go because nobody reads it: whether somebody does, whom the watch does not
   * hear of. If so, it is told how the body ends.
   */
  isReadUnseen?(): boolean
}

/** Its place in a list of timers is that of bodies nobody reads. */
export class BodyWatch implements Timed, ComingBody {
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  fromMs = 0
  readonly #name: string
  /** A body nobody has read for so long is let go. */
  readonly #unread: TimerList
  /** Somebody passes it on, and says so when it rests: it is not unread before. */
  readonly #attended: boolean
  /**
   * Nothing, once it is over. A response outlives its call: whoever got it may keep it, and Node holds
   * it weakly, which only a full collection heeds. All that the call has kept should not wait for that.
   */
  #call: TimedCall<unknown> | undefined
  #listener: BodyListener | undefined
  #begun = false
  #body: WatchedBody | undefined

  constructor(
    name: string,
    call: TimedCall<unknown>,
    unread: TimerList,
    attended: boolean,
    listener: BodyListener,
  ) {
    this.#name = name
    this.#call = call
    this.#unread = unread
    this.#attended = attended
    this.#listener = listener
  }

  /** From now on it is watched. */
  begin(body: WatchedBody): void {
    if (this.#call === undefined) return
    this.#body = body
    this.#call.body = this
    if (!this.#attended) this.#unread.restart(this)
  }

  /** Somebody waits for the next chunk. */
  reading(): void {
    if (this.#call === undefined) return
    this.#unread.remove(this)
    this.#call.expect(this.#begun ? 'idle' : 'firstByte')
  }

  chunk(chunk: unknown): void {
    if (this.#call === undefined) return
    this.#call.heard()
    this.#listener?.onChunk(chunk)
    if (!this.#begun) {
      this.#begun = true
      this.#listener?.onFirstChunk()
    }
    if (!this.#attended) this.#unread.restart(this)
  }

  /** Nobody waits for the next chunk; silence does not count. */
  resting(): void {
    if (this.#call === undefined) return
    this.#call.heard()
    this.#unread.restart(this)
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
    if (this.#call?.givenUp === false) this.#end('abandoned', undefined)
  }

  /** Nobody has read it. */
  onTimeUp(): void {
    if (this.#body?.isReadUnseen?.() === true) return
    this.#call?.giveUp(unreadError(this.#name, this.#unread.delayMs))
  }

  /** A timeout, no reader, the caller, or the end of the guard. */
  givenUp(error: unknown): void {
    const body = this.#body
    this.#end(howGivenUp(error), error)
    body?.breakOff(error)
  }

  #end(how: BodyEnd, error: unknown): void {
    const [call, listener] = [this.#call, this.#listener]
    if (call === undefined) return
    this.#call = undefined
    this.#listener = undefined
    this.#body = undefined
    this.#unread.remove(this)
    call.end()
    listener?.onEnd(how, error)
  }
}

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
