/** Sends requests at a constant rate to two gateways, whether or not earlier requests were answered. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'spillway/testing'
import { Agent, request } from 'undici'

export interface LoadOptions {
  readonly urls: readonly string[]
  readonly keys: readonly string[]
  readonly perSecond: number
  readonly random: Random
  /** Seconds since the start of the run. */
  readonly nowS: () => number
}

/** A request without a complete answer that its client did not abort. */
export interface LostRequest {
  readonly fromS: number
  readonly untilS: number
  /** Of undici or of the socket. */
  readonly code: string
  /** Its headers were received. */
  readonly begun: boolean
  /** How long it waited in the client for a connection. Undefined if it was never sent. */
  readonly waitedMs: number | undefined
  /** No byte was received on its connection, so the gateway may not have accepted it. */
  readonly onNewConnection: boolean
}

const TICK_MS = 20
/** To each gateway; below its limit per address. */
const CONNECTIONS = 500
const HANG_MS = 30_000
const STREAMED = 0.25
/** Share of the requests with a timer that aborts them, unless they were answered before. */
const ABORTED = 0.05
const LONGEST_BEFORE_ABORT_MS = 500
/** Models that the configuration does not name. */
const UNKNOWN_MODELS = 100
const ID_HEADER = 'x-request-id'

export class Load {
  /** Answers by status, or by the code of the gateway's refusal. */
  readonly answers = new Map<string, number>()
  readonly lost: LostRequest[] = []
  sent = 0
  aborted = 0

  readonly #options: LoadOptions
  #agent = newAgent()
  readonly #open = new Set<Promise<void>>()
  /** Sent requests without a complete answer, by id: time of sending, and connection. */
  readonly #onWire = new Map<string, { atMs: number; socket: Socket; newConnection: boolean }>()

  constructor(options: LoadOptions) {
    this.#options = options
    subscribe('undici:client:sendHeaders', this.#noteSent)
  }

  /**
   * Resolves when the requests of this period were sent and answered. `unknownModels`: share of the requests for a
   * model that the configuration does not name.
   */
  async run(ms: number, unknownModels: number, signal: AbortSignal): Promise<void> {
    const { perSecond } = this.#options
    const startMs = performance.now()
    let sent = 0
    while (performance.now() - startMs < ms && !signal.aborted) {
      const due = ((performance.now() - startMs) / 1_000) * perSecond
      for (; sent < due; sent++) this.#send(unknownModels)
      await sleep(TICK_MS)
    }
    await Promise.all(this.#open)
  }

  get succeeded(): number {
    return this.answers.get('200') ?? 0
  }

  get answered(): number {
    return [...this.answers.values()].reduce((total, count) => total + count, 0)
  }

  /** Closes the connections, and uses new ones from now on. */
  async disconnect(): Promise<void> {
    const agent = this.#agent
    this.#agent = newAgent()
    await agent.close()
  }

  async close(): Promise<void> {
    unsubscribe('undici:client:sendHeaders', this.#noteSent)
    await this.#agent.destroy()
  }

  readonly #noteSent = (message: unknown): void => {
    const { headers, socket } = message as { headers: string; socket: Socket }
    const id = new RegExp(`^${ID_HEADER}: (\\S+)`, 'm').exec(headers)?.[1]
    const newConnection = socket.bytesRead === 0
    if (id !== undefined) this.#onWire.set(id, { atMs: performance.now(), socket, newConnection })
  }

  #send(unknownModels: number): void {
    const { urls, random } = this.#options
    const url = urls[this.sent++ % urls.length]!
    const sending = this.#exchange(url, `soak-${this.sent}`, random() < ABORTED, unknownModels)
    this.#open.add(sending)
    sending.finally(() => this.#open.delete(sending))
  }

  async #exchange(url: string, id: string, aborts: boolean, unknownModels: number): Promise<void> {
    const { keys, random, nowS } = this.#options
    const stream = random() < STREAMED
    const isUnknown = random() < unknownModels
    const model = isUnknown ? `unknown-${Math.floor(random() * UNKNOWN_MODELS)}` : 'gpt'
    const content = 'word '.repeat(1 + Math.floor(random() * 200))
    const signal = aborts
      ? AbortSignal.timeout(Math.round(random() * LONGEST_BEFORE_ABORT_MS))
      : undefined
    const [fromS, fromMs] = [nowS(), performance.now()]
    let begun = false
    try {
      const { statusCode, headers, body } = await request(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          [ID_HEADER]: id,
          'content-type': 'application/json',
          authorization: `Bearer ${keys[Math.floor(random() * keys.length)]}`,
        },
        body: JSON.stringify({ model, stream, messages: [{ role: 'user', content }] }),
        dispatcher: this.#agent,
        signal,
      })
      begun = true
      await body.text()
      const reason = /reason=(\w+)/.exec(String(headers['spillway-decision']))?.[1] ?? statusCode
      this.answers.set(`${reason}`, (this.answers.get(`${reason}`) ?? 0) + 1)
    } catch (error) {
      if (signal?.aborted === true) this.aborted++
      else {
        const wire = this.#onWire.get(id)
        this.lost.push({
          fromS,
          untilS: nowS(),
          code: (error as { code?: string }).code ?? String(error),
          begun,
          waitedMs: wire && wire.atMs - fromMs,
          onNewConnection: wire?.newConnection === true && wire.socket.bytesRead === 0,
        })
      }
    } finally {
      this.#onWire.delete(id)
    }
  }
}

function newAgent(): Agent {
  return new Agent({ connections: CONNECTIONS, headersTimeout: HANG_MS, bodyTimeout: HANG_MS })
}
