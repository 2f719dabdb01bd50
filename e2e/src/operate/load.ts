/** Clients that send requests continuously to all ready gateways, like a load balancer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'

export interface Seen {
  sent: number
  /** Number of answers by status, or by error code of a refusal. */
  readonly answers: Map<string, number>
  /** Requests without an answer, or with an incomplete one. */
  readonly lost: string[]
  longestMs: number
}

const LOOK_EVERY_MS = 25
const REST_MS = 30
/** Longer than any request of this scenario may take. */
const HANG_MS = 20_000

export class Clients {
  readonly seen: Seen = { sent: 0, answers: new Map(), lost: [], longestMs: 0 }
  readonly #agent = new Agent({ headersTimeout: HANG_MS, bodyTimeout: HANG_MS })
  readonly #gateways = new Map<string, { adminUrl: string; ready: boolean }>()
  readonly #running: Promise<void>[] = []
  #turn = 0
  #over = false

  add({ url, adminUrl }: { url: string; adminUrl: string }): void {
    this.#gateways.set(url, { adminUrl, ready: true })
  }

  remove(url: string): void {
    this.#gateways.delete(url)
  }

  start(clients: number): void {
    this.#running.push(this.#keepPolling())
    for (let client = 0; client < clients; client++) this.#running.push(this.#keepSending(client))
  }

  /** Resolves when the last request is answered. */
  async stop(): Promise<void> {
    this.#over = true
    await Promise.all(this.#running)
    await this.#agent.destroy()
  }

  async #keepPolling(): Promise<void> {
    while (!this.#over) {
      await Promise.all([...this.#gateways.values()].map((gateway) => this.#probe(gateway)))
      await sleep(LOOK_EVERY_MS)
    }
  }

  async #probe(gateway: { adminUrl: string; ready: boolean }): Promise<void> {
    const answer = await request(`${gateway.adminUrl}/health/ready`, { dispatcher: this.#agent })
      .then(async ({ statusCode, body }) => {
        await body.dump()
        return statusCode
      })
      .catch(() => 0)
    gateway.ready = answer === 200
  }

  async #keepSending(client: number): Promise<void> {
    // Every fourth request is streamed.
    const stream = client % 4 === 0
    while (!this.#over) {
      const ready = [...this.#gateways].filter(([, gateway]) => gateway.ready)
      const url = ready[this.#turn++ % Math.max(1, ready.length)]?.[0]
      if (url !== undefined) await this.#ask(url, stream)
      await sleep(REST_MS)
    }
  }

  /** A refused connection is not counted: a load balancer would try another gateway. */
  async #ask(url: string, stream: boolean): Promise<void> {
    const { seen } = this
    const startMs = performance.now()
    seen.sent++
    try {
      const { statusCode, headers, body } = await request(`${url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'gpt', stream, messages: [] }),
        dispatcher: this.#agent,
      })
      const text = await body.text()
      if (statusCode === 200 && stream && !text.includes('[DONE]'))
        throw new Error('the stream ended without [DONE]')
      const reason = /reason=(\w+)/.exec(String(headers['spillway-decision']))?.[1]
      const what = reason ?? String(statusCode)
      seen.answers.set(what, (seen.answers.get(what) ?? 0) + 1)
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      if (code === 'ECONNREFUSED') {
        seen.sent--
        return
      }
      seen.lost.push(code ?? message)
    }
    seen.longestMs = Math.max(seen.longestMs, performance.now() - startMs)
  }
}
