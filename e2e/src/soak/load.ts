/** Sends requests at a constant rate to two gateways, whether or not earlier requests were answered. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'spillway/testing'
import { Agent, request } from 'undici'

export interface LoadOptions {
  readonly urls: readonly string[]
  readonly keys: readonly string[]
  readonly perSecond: number
  readonly random: Random
}

const TICK_MS = 20
/** To each gateway; below its limit per address. */
const CONNECTIONS = 500
const HANG_MS = 30_000
const STREAMED = 0.25
/** Share of the requests that their client aborts. */
const ABORTED = 0.05
const LONGEST_BEFORE_ABORT_MS = 500
/** Share of the requests for a model that the configuration does not name. */
const UNKNOWN_MODEL = 0.02

export class Load {
  /** Answers by status, or by the code of the gateway's refusal. */
  readonly answers = new Map<string, number>()
  /** Requests without a complete answer, by cause. Requests aborted by their client are not among them. */
  readonly lost = new Map<string, number>()
  sent = 0
  aborted = 0

  readonly #options: LoadOptions
  readonly #agent = new Agent({
    connections: CONNECTIONS,
    headersTimeout: HANG_MS,
    bodyTimeout: HANG_MS,
  })
  readonly #open = new Set<Promise<void>>()

  constructor(options: LoadOptions) {
    this.#options = options
  }

  /** Resolves when the requests of this period were sent and answered. */
  async run(ms: number): Promise<void> {
    const { perSecond } = this.#options
    const startMs = performance.now()
    let sent = 0
    while (performance.now() - startMs < ms) {
      const due = ((performance.now() - startMs) / 1_000) * perSecond
      for (; sent < due; sent++) this.#send()
      await sleep(TICK_MS)
    }
    await Promise.all(this.#open)
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }

  #send(): void {
    const { urls, random } = this.#options
    const url = urls[this.sent++ % urls.length]!
    const sending = this.#exchange(url, random() < ABORTED).finally(() => {
      this.#open.delete(sending)
    })
    this.#open.add(sending)
  }

  async #exchange(url: string, aborts: boolean): Promise<void> {
    const { keys, random } = this.#options
    const stream = random() < STREAMED
    const model = random() < UNKNOWN_MODEL ? `unknown-${Math.floor(random() * 500)}` : 'gpt'
    const content = 'word '.repeat(1 + Math.floor(random() * 200))
    const signal = aborts
      ? AbortSignal.timeout(Math.round(random() * LONGEST_BEFORE_ABORT_MS))
      : undefined
    try {
      const { statusCode, headers, body } = await request(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${keys[Math.floor(random() * keys.length)]}`,
        },
        body: JSON.stringify({ model, stream, messages: [{ role: 'user', content }] }),
        dispatcher: this.#agent,
        signal,
      })
      await body.text()
      const reason = /reason=(\w+)/.exec(String(headers['spillway-decision']))?.[1]
      add(this.answers, reason ?? String(statusCode))
    } catch (error) {
      if (signal?.aborted === true) this.aborted++
      else add(this.lost, (error as { code?: string }).code ?? String(error))
    }
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}
