/**
 * One reader of the feed: a response that stays open. What a slow one cannot take is left out, and made up for by
 * how things stand once it can; nothing is kept for it in memory but what is on its way.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../core/time/clock.js'
import type { Hello } from '../wire/hello.js'

/** With more than this on its way, the rest is left out. */
const MOST_UNDER_WAY = 256 * 1_024
/** With less than this it has caught up. */
const CAUGHT_UP = 32 * 1_024
/** One that takes nothing for so long has gone without a word. */
const MOST_BEHIND_MS = 30_000

export const FEED_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
} as const

export class FeedReader {
  readonly acts: Hello['acts']
  readonly #response: ServerResponse
  #behindSinceMs: number | undefined
  #ended = false

  constructor(response: ServerResponse, acts: Hello['acts'], onEnd: () => void) {
    this.acts = acts
    this.#response = response
    response.on('error', () => {})
    response.on('close', () => {
      this.#ended = true
      onEnd()
    })
    response.writeHead(200, FEED_HEADERS)
    // How long to wait before coming back.
    response.write('retry: 1000\n\n')
  }

  get ended(): boolean {
    return this.#ended || this.#response.destroyed
  }

  /** Something was left out, and it could take more now. */
  get isBack(): boolean {
    return this.#behindSinceMs !== undefined && this.#response.writableLength <= CAUGHT_UP
  }

  /** From now on it is told everything again. */
  resume(): void {
    this.#behindSinceMs = undefined
  }

  /** Answers whether it was told. */
  send(message: string, nowMs: number): boolean {
    if (this.ended) return false
    if (this.#behindSinceMs === undefined && this.#response.writableLength <= MOST_UNDER_WAY) {
      this.#response.write(message)
      return true
    }
    this.#behindSinceMs ??= nowMs
    if (nowMs - this.#behindSinceMs > MOST_BEHIND_MS) this.#response.destroy()
    return false
  }

  /** When so much has been taken that more may follow, or it is let go. */
  async drained(clock: Clock): Promise<void> {
    const response = this.#response
    if (this.ended || !response.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const patience = clock.schedule(MOST_BEHIND_MS, () => response.destroy())
      patience.unref()
      const done = () => {
        patience.cancel()
        response.off('drain', done)
        response.off('close', done)
        resolve()
      }
      response.on('drain', done)
      response.on('close', done)
    })
  }

  end(): void {
    this.#ended = true
    this.#response.end()
    // Whoever does not take the end of it is not waited for.
    this.#response.socket?.destroySoon()
  }
}
