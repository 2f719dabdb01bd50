/**
 * One request and its response. Waits end as soon as the client disconnects, and writes wait for
 * slow clients.
 */
import type { ServerResponse } from 'node:http'
import { systemClock } from 'spillway/internal'
import type { CallLog, OpenCall } from './log.js'

export class Exchange {
  readonly call: OpenCall
  readonly #response: ServerResponse
  readonly #keepsAlive: boolean
  /** Ends the current wait; there is at most one. */
  #wake: (() => void) | undefined
  #cause: 'cut' | 'closed' | undefined
  #over = false

  constructor(
    call: OpenCall,
    { response, log, unref }: { response: ServerResponse; log: CallLog; unref: boolean },
  ) {
    this.call = call
    this.#response = response
    this.#keepsAlive = !unref
    response.on('drain', () => this.#wake?.())
    // A client may disconnect between two writes; the close event reports that.
    response.on('error', () => {})
    response.once('close', () => {
      this.#over = true
      const how = this.#cause ?? (response.writableFinished ? 'completed' : 'cancelled')
      log.end(call, how, systemClock.now())
      this.#wake?.()
    })
  }

  /** False: the client has disconnected. */
  async wait(ms: number): Promise<boolean> {
    if (this.#over || ms <= 0) return !this.#over
    await new Promise<void>((resolve) => {
      // A delay that never ends: longer than any process runs.
      const timer = ms < Number.MAX_SAFE_INTEGER ? systemClock.schedule(ms, resolve) : undefined
      if (!this.#keepsAlive) timer?.unref()
      this.#wake = () => {
        timer?.cancel()
        resolve()
      }
    })
    this.#wake = undefined
    return !this.#over
  }

  /** Sends the headers at once, before the body. */
  head(status: number, headers: Record<string, string>): void {
    if (this.#over) return
    this.call.status = status
    this.call.headersAtMs = systemClock.now()
    this.#response.writeHead(status, headers).flushHeaders()
  }

  async send(part: string | Buffer): Promise<boolean> {
    if (this.#over) return false
    this.call.bytes += Buffer.byteLength(part)
    if (this.#response.write(part)) return true
    return this.wait(Number.POSITIVE_INFINITY)
  }

  finish(): void {
    if (!this.#over) this.#response.end()
  }

  /** Data sent so far still arrives; the end of the response does not. */
  cut(): void {
    if (this.#over) return
    this.#cause = 'cut'
    const { socket } = this.#response
    // Node 26 writes data sent in this tick in the next one.
    process.nextTick(() => socket?.destroySoon())
  }

  /** The vendor is closed, and this response with it. */
  abandon(): void {
    if (this.#over) return
    this.#cause ??= 'closed'
    this.#response.socket?.destroy()
  }
}
