/**
 * A body on its way from the downstream to its reader. The call it belongs to is over when the body
 * is: complete, cut, stalled, left by its reader, or aborted. Nothing is buffered. Silence counts only while the
 * body is being read, and a body that is not read is abandoned.
 */
import { type Details, readableTime, SpillwayError } from '../../core/errors.js'
import type { Timed } from '../../core/time/timer-list.js'
import type { ComingBody, TimedCall } from '../../local/timeout/timed-call.js'
import type { BodyLimits } from './body-limits.js'

/** How a body ended. */
export type BodyEnd =
  | 'complete'
  /** The downstream broke off. */
  | 'truncated'
  /** The downstream fell silent while the body was being read. */
  | 'stalled'
  /** It was not read, or its reader cancelled it. */
  | 'abandoned'
  /** The caller aborted, or its deadline passed. */
  | 'aborted'

/** Receives the events of a body. */
export interface BodyListener {
  onFirstChunk(): void
  onChunk(chunk: unknown): void
  /** Once. The error is the one that the reader got, if any. */
  onEnd(how: BodyEnd, error: unknown): void
}

/** The body itself, as its watch sees it. */
export interface WatchedBody {
  /** Ends both sides of the body: that of the reader, and that of the downstream. */
  breakOff(error: unknown): void
}

/**
 * State of the body: it waits for its downstream, its reader, or neither. Each chunk changes the state twice, so only
 * the time of the change is stored. The timer is set for the shortest limit and is set again if it fires before the
 * limit of the current state.
 */
type Waiting = 'downstream' | 'reader' | 'none'

export class BodyWatch implements Timed, ComingBody {
  sooner: Timed | undefined
  later: Timed | undefined
  timed = false
  fromMs = 0
  readonly #limits: BodyLimits
  /** An owner passes the body on and reports when its reader pauses; until then it does not count as unread. */
  readonly #attended: boolean
  /**
   * Undefined once it is over: the caller may keep the response, which should not keep the call alive.
   */
  #call: TimedCall<unknown> | undefined
  #listener: BodyListener | undefined
  #begun = false
  #waiting: Waiting = 'none'
  #sinceMs = 0
  #body: WatchedBody | undefined

  constructor(
    limits: BodyLimits,
    call: TimedCall<unknown>,
    attended: boolean,
    listener: BodyListener,
  ) {
    this.#limits = limits
    this.#call = call
    this.#attended = attended
    this.#listener = listener
  }

  /** Starts the limits of the body. */
  begin(body: WatchedBody): void {
    if (this.#call === undefined) return
    this.#body = body
    this.#call.body = this
    this.#waitFor(this.#attended ? 'none' : 'reader')
    this.#arm(this.#sinceMs)
  }

  /** The reader waits for the next chunk. */
  reading(): void {
    if (this.#call === undefined) return
    this.#waitFor('downstream')
    // The time to the headers is part of the time to the first byte, so this may be soon.
    if (!this.#begun && this.#dueFromMs() < this.fromMs) this.#arm(this.#sinceMs)
  }

  chunk(chunk: unknown): void {
    if (this.#call === undefined) return
    this.#waitFor(this.#attended ? 'none' : 'reader')
    this.#listener?.onChunk(chunk)
    if (!this.#begun) {
      this.#begun = true
      this.#listener?.onFirstChunk()
    }
  }

  /** The reader does not wait for the next chunk, so silence does not count. */
  resting(): void {
    if (this.#call !== undefined) this.#waitFor('reader')
  }

  /** The body is read without this watch, so neither silence nor rest counts. */
  readElsewhere(): void {
    if (this.#call !== undefined) this.#waitFor('none')
  }

  #waitFor(waiting: Waiting): void {
    this.#waiting = waiting
    this.#sinceMs = this.#limits.clock.now()
  }

  /** Limit of the current state. */
  #limitMs(): number {
    const { unreadMs, firstByteMs, idleMs = Number.POSITIVE_INFINITY } = this.#limits
    if (this.#waiting === 'reader') return unreadMs
    if (this.#waiting === 'none') return Number.POSITIVE_INFINITY
    return this.#begun ? idleMs : (firstByteMs ?? idleMs)
  }

  /** The start time that makes a timer of the list fire exactly at the current limit. */
  #dueFromMs(): number {
    const firstByteLimitMs =
      this.#waiting === 'downstream' && !this.#begun && this.#limits.firstByteMs
    const elapsedMs = firstByteLimitMs ? (this.#call?.answerMs ?? 0) : 0
    return this.#sinceMs + this.#limitMs() - elapsedMs - this.#limits.alarms.delayMs
  }

  /** Arms the timer for the current limit, or earlier if a state that may follow has an earlier one. */
  #arm(nowMs: number): void {
    const { alarms } = this.#limits
    alarms.remove(this)
    this.fromMs = Math.min(nowMs, this.#dueFromMs())
    alarms.add(this)
  }

  onTimeUp(): void {
    const { clock, alarms } = this.#limits
    const nowMs = clock.now()
    // Computed as the timer list does it, so that both round alike.
    if (this.#dueFromMs() + alarms.delayMs > nowMs) this.#arm(nowMs)
    else if (this.#waiting === 'reader') this.#unread()
    else this.#call?.silent(this.#begun)
  }

  #unread(): void {
    const { name, unreadMs } = this.#limits
    this.#call?.giveUp(unreadError(name, unreadMs))
  }

  complete(): void {
    this.#end('complete', undefined)
  }

  truncated(error: unknown): void {
    this.#end('truncated', error)
  }

  /** The reader cancelled the body. */
  left(): void {
    // An aborted fetch cancels its own body: that is not the reader.
    if (this.#call?.givenUp === false) this.#end('abandoned', undefined)
  }

  /** A timeout, no reader, the caller, or the end of the guard. */
  givenUp(error: unknown): void {
    const body = this.#body
    this.#end(endOfAbort(error), error)
    body?.breakOff(error)
  }

  #end(how: BodyEnd, error: unknown): void {
    const [call, listener] = [this.#call, this.#listener]
    if (call === undefined) return
    this.#call = undefined
    this.#listener = undefined
    this.#body = undefined
    this.#limits.alarms.remove(this)
    call.end()
    listener?.onEnd(how, error)
  }
}

function endOfAbort(error: unknown): BodyEnd {
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
  return `${name}: the answer was not read for ${readableTime(limitMs)} (unreadMs), so it was abandoned`
}
