/** One vendor: its guard, its connections, its lanes, and how a request looks on the way to it. */
import type { CallContext, Guard, GuardOptions, Spillway } from 'spillway'
import { type Dispatcher, Pool } from 'undici'
import type { TargetConfig, VendorConfig } from '../config/config.js'
import { PROTOCOLS } from '../protocols/index.js'
import type { Asked, Protocol } from '../protocols/protocol.js'
import { AnswerPrior } from '../tokens/prior.js'
import { type AnswerListener, VendorAnswer } from './vendor-answer.js'

export interface VendorRequest {
  readonly method: Dispatcher.HttpMethod
  /** With the query. */
  readonly path: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Buffer | string | AsyncIterable<Buffer> | undefined
}

/** Idle connections are given up before most servers do so, so that none is used as it closes. */
const KEEP_ALIVE_MS = 4_000
const MOST_LANES = 10_000
const OTHER_LANE = 'other'

export class Vendor {
  readonly name: string
  readonly protocol: Protocol
  readonly guard: Guard
  readonly #config: VendorConfig
  readonly #pool: Pool
  readonly #basePath: string
  readonly #units: ReadonlySet<string>
  readonly #priors = new Map<string, AnswerPrior>()

  constructor(config: VendorConfig, url: string, spillway: Spillway) {
    this.name = config.name
    this.protocol = PROTOCOLS[config.protocol]
    this.#config = config
    this.guard = spillway.guard(config.name, config.guard as GuardOptions)
    const { origin, pathname } = new URL(url)
    this.#basePath = pathname.replace(/\/+$/, '')
    this.#units = new Set(config.guard.limits?.map(({ unit = 'requests' }) => unit))
    this.#pool = new Pool(origin, {
      connect: { timeout: config.connectMs },
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Silence is the guard's affair.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /** Whether what an answer cost matters to a limit. */
  get countsTokens(): boolean {
    return this.#units.has('tokens') || this.#units.has('outputTokens')
  }

  /** What the vendor counts apart: the model, and the key if there are several. */
  laneOf(model: string | undefined, target: TargetConfig): string | undefined {
    const key = this.#config.keys.length > 1 ? this.#keyOf(target)?.name : undefined
    const lane = model === undefined ? key : key === undefined ? model : `${model} (${key})`
    if (lane === undefined || this.#priors.has(lane)) return lane
    // Models come from requests, and lanes are remembered: no request may fill the memory.
    if (this.#priors.size >= MOST_LANES) return OTHER_LANE
    this.#priors.set(lane, new AnswerPrior())
    return lane
  }

  /** What to book: the prompt, and as much as the answer may have, or usually has. */
  costOf(asked: Asked, lane: string | undefined): Record<string, number> | undefined {
    const units = this.#units
    if (units.size === 0 || (units.size === 1 && units.has('requests'))) return undefined
    const { promptTokens } = asked
    const answerTokens = asked.maxTokens ?? this.#priorOf(lane).guess()
    const cost: Record<string, number> = {}
    if (units.has('tokens')) cost.tokens = Math.ceil(promptTokens + answerTokens)
    if (units.has('inputTokens')) cost.inputTokens = Math.ceil(promptTokens)
    if (units.has('outputTokens')) cost.outputTokens = Math.ceil(answerTokens)
    return cost
  }

  learn(lane: string | undefined, outputTokens: number): void {
    this.#priorOf(lane).learn(outputTokens)
  }

  /** Our key, and what else goes with every request. */
  ownHeaders(target: TargetConfig): string[] {
    const own: string[] = []
    const key = this.#keyOf(target)
    if (key !== undefined) own.push(...this.protocol.vendorKey(key.secret))
    for (const [name, value] of Object.entries(this.#config.headers)) own.push(name, value)
    return own
  }

  get hasKey(): boolean {
    return this.#config.keys.length > 0
  }

  /** The names of headers that are ours to set. */
  get ownNames(): readonly string[] {
    return Object.keys(this.#config.headers).map((name) => name.toLowerCase())
  }

  send(
    { method, path, headers, body }: VendorRequest,
    { signal }: CallContext,
    listener: AnswerListener,
  ): Promise<VendorAnswer> {
    return new VendorAnswer(signal, listener).askedOf(this.#pool, {
      method,
      path: this.#basePath + path,
      headers,
      // undici takes an iterable, though its types do not say so here.
      body: body as Buffer | string | null,
    })
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  #keyOf({ key }: TargetConfig) {
    const { keys } = this.#config
    return key === undefined ? keys[0] : keys.find(({ name }) => name === key)
  }

  #priorOf(lane = OTHER_LANE): AnswerPrior {
    let prior = this.#priors.get(lane)
    if (prior === undefined) {
      prior = new AnswerPrior()
      this.#priors.set(lane, prior)
    }
    return prior
  }
}
