/** Records the requests of a mock vendor. */
import type { IncomingHttpHeaders } from 'node:http'
import { ArrivalLog } from 'spillway/internal'
import type { LimitUnit } from './quota/contract.js'
import type { QuotaDecision } from './quota/limits.js'

/**
 * `completed`: the response was sent entirely, even if it was an error. `cancelled`: the client
 * disconnected earlier. `cut`: a knob destroyed the socket. `closed`: the vendor was closed.
 */
export type MockCallEnd = 'open' | 'completed' | 'cancelled' | 'cut' | 'closed'

/** One request to the mock vendor. Times are `performance.now()` of this process. */
export interface MockCall {
  /** Starts at 1, in order of arrival. */
  readonly number: number
  /** The request id of the response header. */
  readonly requestId: string
  /** The API that the request used. */
  readonly api: 'openai' | 'anthropic' | 'gemini' | 'azure'
  /** HTTP method. */
  readonly method: string
  /** Path of the URL. */
  readonly path: string
  /** Headers of the request. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** When it arrived. */
  readonly atMs: number
  /** Its API key; empty without one. */
  readonly key: string
  /** The `idempotency-key` header. */
  readonly idempotencyKey: string | undefined
  /** The `x-stainless-retry-count` header, in which both SDKs report their own retries. */
  readonly retryCount: number | undefined
  /** Empty if the request could not be read. */
  readonly model: string
  /** Whether it requested a stream. */
  readonly streamed: boolean
  /** Tokens of its prompt. */
  readonly promptTokens: number
  /** The part of the prompt that was read from the cache. */
  readonly cachedTokens: number
  /** The part of the prompt that was written to the cache. */
  readonly cacheWriteTokens: number
  /** Tokens of the whole response, sent or not. */
  readonly completionTokens: number
  /** Units that the quota charged at arrival. Undefined if the request was refused. */
  readonly reserved: Readonly<Record<LimitUnit, number>> | undefined
  /** Charged units, corrected when the response has ended. */
  readonly charged: Readonly<Record<LimitUnit, number>> | undefined
  /** HTTP status of the response, once it is known. */
  readonly status: number | undefined
  /** When the headers were sent. */
  readonly headersAtMs: number | undefined
  /** Events sent so far; a response in one piece is one. */
  readonly chunks: number
  /** Output tokens that were sent. */
  readonly tokensSent: number
  /** Bytes of the body passed to the socket. */
  readonly bytes: number
  /** How it ended. */
  readonly end: MockCallEnd
  /** When it ended. */
  readonly endedAtMs: number | undefined
}

export type OpenCall = { -readonly [K in keyof MockCall]: MockCall[K] }

/** How requests ended. Open ones are only in `arrived`. */
export interface MockCounts {
  /** All requests. */
  arrived: number
  /** Answered in full with a status below 400. */
  succeeded: number
  /** Answered in full with any other status. */
  failed: number
  /** Answered with 429. */
  throttled: number
  /** The client disconnected. */
  cancelled: number
  /** Cut by a knob. */
  cut: number
  /** Ended by `close()`. */
  closed: number
}

/** Which requests to count. */
export interface MockArrivals {
  /** The counted unit; `inputTokens` and `outputTokens` only with `accepted`. Default: `requests`. */
  unit?: LimitUnit | undefined
  /**
   * Counts only requests that the limits admitted, in the units that the quota charged, by arrival time. Default:
   * false.
   */
  accepted?: boolean | undefined
  /** Only requests with this API key. Default: all keys. */
  key?: string | undefined
  /** Only requests for this model. Default: all models. */
  model?: string | undefined
}

interface Lane {
  readonly key: string
  readonly model: string
  readonly arrivals: { atMs: number; tokens: number }[]
  readonly admitted: { readonly atMs: number; readonly decision: Pick<QuotaDecision, 'cost'> }[]
}

export class CallLog {
  readonly counts: MockCounts = noCounts()
  readonly calls: OpenCall[] = []
  mostAtOnce = 0
  readonly #open = new Set<OpenCall>()
  readonly #maxCalls: number
  readonly #lanes = new Map<string, Lane>()
  #idlers: (() => void)[] = []

  constructor(maxCalls: number) {
    this.#maxCalls = maxCalls
  }

  get atOnce(): number {
    return this.#open.size
  }

  arrive(call: OpenCall): void {
    this.counts.arrived++
    this.#open.add(call)
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce)
    this.calls.push(call)
    if (this.calls.length > this.#maxCalls) this.calls.shift()
  }

  /** Called once the request has been read; refused ones arrived as well. */
  weigh({ key, model, atMs, promptTokens, completionTokens }: OpenCall): void {
    const name = laneOf(key, model)
    const lane = this.#lanes.get(name) ?? { key, model, arrivals: [], admitted: [] }
    this.#lanes.set(name, lane)
    lane.arrivals.push({ atMs, tokens: promptTokens + completionTokens })
  }

  /** The limits admitted a request. The cost may change when its response has ended. */
  admit(call: OpenCall, atMs: number, decision: Pick<QuotaDecision, 'cost'>): void {
    const { key, model } = call
    call.reserved = decision.cost
    call.charged = decision.cost
    this.#lanes.get(laneOf(key, model))?.admitted.push({ atMs, decision })
  }

  end(call: OpenCall, how: Exclude<MockCallEnd, 'open'>, atMs: number): void {
    if (!this.#open.delete(call)) return
    call.end = how
    call.endedAtMs = atMs
    this.counts[bucketOf(call, how)]++
    if (this.atOnce > 0) return
    for (const idle of this.#idlers.splice(0)) idle()
  }

  whenIdle(): Promise<void> {
    if (this.atOnce === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idlers.push(resolve))
  }

  mostIn(windowMs: number, { unit = 'requests', accepted, key, model }: MockArrivals): number {
    const chosen = [...this.#lanes.values()].filter(
      (lane) =>
        (key === undefined || lane.key === key) && (model === undefined || lane.model === model),
    )
    const log = new ArrivalLog()
    // A large request may be read completely after a small one that arrived later.
    const arrivals = chosen
      .flatMap((lane) => (accepted ? admittedIn(lane, unit) : arrivedIn(lane, unit)))
      .sort((a, b) => a.atMs - b.atMs)
    for (const { atMs, amount } of arrivals) log.add(atMs, amount)
    return log.mostIn(windowMs)
  }

  /** Drops everything except open requests. */
  clear(): void {
    Object.assign(this.counts, noCounts(), { arrived: this.atOnce })
    this.calls.splice(0, this.calls.length, ...this.#open)
    this.mostAtOnce = this.atOnce
    this.#lanes.clear()
  }
}

export function laneOf(key: string, model: string): string {
  return `${key}\n${model}`
}

interface Amount {
  readonly atMs: number
  readonly amount: number
}

function arrivedIn({ arrivals }: Lane, unit: LimitUnit): Amount[] {
  return arrivals.map(({ atMs, tokens }) => ({ atMs, amount: unit === 'tokens' ? tokens : 1 }))
}

function admittedIn({ admitted }: Lane, unit: LimitUnit): Amount[] {
  return admitted.map(({ atMs, decision }) => ({ atMs, amount: decision.cost[unit] }))
}

function noCounts(): MockCounts {
  return { arrived: 0, succeeded: 0, failed: 0, throttled: 0, cancelled: 0, cut: 0, closed: 0 }
}

function bucketOf({ status = 0 }: OpenCall, how: Exclude<MockCallEnd, 'open'>): keyof MockCounts {
  if (how !== 'completed') return how
  if (status === 429) return 'throttled'
  return status < 400 ? 'succeeded' : 'failed'
}
