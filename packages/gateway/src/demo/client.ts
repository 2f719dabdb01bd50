/** Sends demo requests: of several users, for several models, with a batch from time to time. */
import type { Guard, Priority } from 'spillway'

interface DemoRequest {
  readonly user: string
  readonly tier: string
  readonly priority: Priority
  readonly model: string
}

/** A fixed list of callers, used in turn, so that the page shows the same users repeatedly. */
const REQUESTS: readonly DemoRequest[] = [
  { user: 'ada', tier: 'pro', priority: 'high', model: 'gpt-4o' },
  { user: 'grace', tier: 'pro', priority: 'normal', model: 'gpt-4o-mini' },
  { user: 'linus', tier: 'free', priority: 'normal', model: 'gpt-4o' },
  { user: 'edsger', tier: 'free', priority: 'low', model: 'gpt-4o-mini' },
  { user: 'barbara', tier: 'pro', priority: 'critical', model: 'gpt-4o' },
]
/** A batch is sent after this number of requests, so that the queue is in use. */
const BATCH_EVERY = 120
const BATCH = 60
/** Async requests per batch: about as many as two workers finish until the next batch. */
const LATER = 20
/** Requests in flight at most, so that a vendor that never answers does not fill the memory. */
const MOST_AT_ONCE = 200

export class DemoClient {
  readonly #mockUrl: string
  #sent = 0
  #atOnce = 0
  #leaving = new AbortController()

  constructor(mockUrl: string) {
    this.#mockUrl = mockUrl
  }

  begin(): void {
    this.#leaving = new AbortController()
  }

  end(): void {
    this.#leaving.abort()
  }

  callGateway(url: string): void {
    const count = ++this.#sent % BATCH_EVERY === 0 ? BATCH : 1
    for (let each = 0; each < count; each++) this.#go(() => this.#overHttp(url, this.#next(each)))
  }

  /** Async requests: answered with a job address and processed by the gateway's job queue for this model. */
  submitJob(url: string, model: string): void {
    for (let each = 0; each < LATER; each++) {
      const request = { ...this.#next(each), model }
      this.#go(() => this.#overHttp(url, request, { prefer: 'respond-async' }))
    }
  }

  callThroughGuard(guards: readonly { guard: Guard; protocol: string }[]): void {
    const openai = guards.find(({ protocol }) => protocol === 'openai')?.guard
    if (openai === undefined) return
    const { model, ...who } = this.#next(++this.#sent)
    const send = openai.fetchFor({
      ...who,
      lane: model,
      cost: { tokens: 100 },
      idempotencyKey: 'demo',
    })
    this.#go(() => this.#post(send, `${this.#mockUrl}/v1/chat/completions`, model, {}))
  }

  #next(turn: number): DemoRequest {
    return REQUESTS[(this.#sent + turn) % REQUESTS.length] as DemoRequest
  }

  #overHttp(
    url: string,
    { user, tier, priority, model }: DemoRequest,
    preference: Record<string, string> = {},
  ): Promise<void> {
    const headers = {
      ...preference,
      'spillway-user': user,
      'spillway-tier': tier,
      'spillway-priority': priority,
    }
    return this.#post(fetch, `${url}/v1/chat/completions`, model, headers)
  }

  async #post(
    send: typeof fetch | Guard['fetch'],
    url: string,
    model: string,
    headers: Record<string, string>,
  ): Promise<void> {
    const response = await send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
      signal: this.#leaving.signal,
    })
    await response.arrayBuffer()
  }

  /** The result is ignored here; the page shows it. */
  #go(send: () => Promise<void>): void {
    if (this.#atOnce >= MOST_AT_ONCE) return
    this.#atOnce++
    send()
      .catch(() => {})
      .finally(() => {
        this.#atOnce--
      })
  }
}
