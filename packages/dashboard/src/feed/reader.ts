/**
 * One reader of the feed: a response that stays open. Messages that a slow reader cannot take are
 * dropped, and replaced by the current state once it has caught up. Only messages in flight are
 * kept in memory.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from 'spillway'
import type { Hello } from '../wire/hello.js'

/** With more bytes than this in flight, messages are dropped. */
const MOST_UNDER_WAY = 256 * 1_024
/** With fewer than this it has caught up. */
const CAUGHT_UP = 32 * 1_024
/** A reader that takes nothing for this long has disappeared. */
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
    // Reconnection delay of the browser.
    response.write('retry: 1000\n\n')
  }

  get ended(): boolean {
    return this.#ended || this.#response.destroyed
  }

  /** Messages were dropped, and it could take more now. */
  get isBack(): boolean {
    return this.#behindSinceMs !== undefined && this.#response.writableLength <= CAUGHT_UP
  }

  /** It gets all messages again from now on. */
  resume(): void {
    this.#behindSinceMs = undefined
  }

  /** Returns whether the message was sent. */
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

  /** Resolves when more can be sent, or when the reader has ended. */
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
    const { socket } = this.#response
    // Does not wait for a reader that does not take the end. Node 26 writes the end in the next tick.
    process.nextTick(() => socket?.destroySoon())
  }
}
