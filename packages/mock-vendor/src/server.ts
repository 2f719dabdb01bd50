/** The HTTP server of a mock vendor: API keys, paths and limits. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createRandom, systemClock } from 'spillway/internal'
import { validate } from 'spillway/options'
import { play, refuse, sendPayload } from './answer.js'
import { type CacheUse, NO_CACHE, PromptCache, readPromptCache } from './content/prompt-cache.js'
import { isTruncated, tokensOf, tokenText } from './content/tokens.js'
import {
  type Answer,
  type Dialect,
  findEndpoint,
  isFailure,
  isPayload,
  type ParsedRequest,
} from './dialect.js'
import { Exchange } from './exchange.js'
import { FileStore } from './file-store.js'
import { parseForm } from './form.js'
import { type Knobs, layKnobs, planFor, readKnobs } from './knobs.js'
import { CallLog, laneOf, type OpenCall } from './log.js'
import type { Options } from './options.js'
import { isExcess, Limits } from './quota/limits.js'
import { quotaModel } from './quota/quota-models.js'
import { callOf, dialectOf, parse, readBody } from './request.js'

/** A thousand clients may connect at the same moment. */
const BACKLOG = 4_096
/** Clients keep idle connections. Closing one just as it is reused would look like a fault. */
const KEEP_ALIVE_MS = 120_000

export class VendorServer {
  readonly log: CallLog
  readonly #options: Options
  #knobs: Knobs
  #models: Map<string, Knobs>
  #limits: Limits
  #cache: PromptCache | undefined
  readonly #files = new FileStore()
  #slowSinceMs = 0
  #number = 0
  #port: number
  #running: Promise<{ server: Server; url: string; port: number }> | undefined
  readonly #exchanges = new Set<Exchange>()
  readonly #sockets = new Set<Socket>()
  #opened = 0
  #mostOpen = 0

  constructor(options: Options) {
    this.#options = options
    this.#port = options.port
    this.log = new CallLog(options.maxCalls)
    this.#knobs = layKnobs([options.knobs])
    this.#models = new Map(options.models)
    this.#limits = new Limits(options.limits, quotaModel(options.quota))
    this.#cache = cacheOf(options)
  }

  async start(): Promise<{ url: string; port: number }> {
    this.#running ??= this.#listen()
    try {
      const { url, port } = await this.#running
      return { url, port }
    } catch (error) {
      this.#running = undefined
      throw error
    }
  }

  async close(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    if (running === undefined) return
    const { server } = await running
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const exchange of this.#exchanges) exchange.abandon()
    for (const socket of this.#sockets) socket.destroy()
    await closed
    await this.log.whenIdle()
  }

  set(knobs: Knobs, model?: string): void {
    if (knobs.slowStart !== undefined) this.#slowSinceMs = systemClock.now()
    if (model === undefined) this.#knobs = layKnobs([this.#knobs, knobs])
    else this.#models.set(model, layKnobs([this.#models.get(model), knobs]))
  }

  setLimits(limits: Options['limits']): void {
    this.#limits = new Limits(limits, quotaModel(this.#options.quota))
  }

  reset(): void {
    this.#knobs = layKnobs([this.#options.knobs])
    this.#models = new Map(this.#options.models)
    this.#limits = new Limits(this.#options.limits, quotaModel(this.#options.quota))
    this.#cache = cacheOf(this.#options)
  }

  get sockets(): { open: number; mostOpen: number; opened: number } {
    return { open: this.#sockets.size, mostOpen: this.#mostOpen, opened: this.#opened }
  }

  async #listen(): Promise<{ server: Server; url: string; port: number }> {
    const { host, unref } = this.#options
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      this.#handle(request, response),
    )
    server.on('connection', (socket) => this.#connect(socket))
    if (unref) server.unref()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      // In a worker of `node:cluster`, a listener without `exclusive` would be shared with the other workers.
      server.listen({ host, port: this.#port, backlog: BACKLOG, exclusive: true }, resolve)
    })
    this.#slowSinceMs = systemClock.now()
    this.#port = (server.address() as AddressInfo).port
    const name = host.includes(':') ? `[${host}]` : host
    return { server, url: `http://${name}:${this.#port}`, port: this.#port }
  }

  #connect(socket: Socket): void {
    if (this.#options.unref) socket.unref()
    this.#opened++
    this.#sockets.add(socket)
    this.#mostOpen = Math.max(this.#mostOpen, this.#sockets.size)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '/', search = ''] = (request.url ?? '/').split('?', 2)
    const query = new URLSearchParams(search)
    const dialect = dialectOf(path, request)
    const call = callOf(++this.#number, { request, path, query, dialect })
    const exchange = this.#admit(call, response)
    const body = await readBody(request)
    // The client disconnected during its request, which the exchange has recorded.
    if (body === undefined) return
    const headers = () => this.#headersFor(call, dialect)
    const scene = { exchange, dialect, headers }

    const { keys } = this.#options
    if (keys !== undefined && !keys.includes(call.key)) {
      return refuse(scene, dialect.unauthorized(call.key))
    }
    const { method } = call
    const found = findEndpoint(dialect, { method, path })
    if (found === undefined) {
      return refuse(scene, dialect.failure(404, `Invalid URL (${method} ${path})`))
    }
    const parsed = found.endpoint.read({
      headers: request.headers,
      params: found.params,
      query,
      body: parse(body.toString('utf8')),
      form: await parseForm(request.headers['content-type'], body),
      files: this.#files,
      models: this.#modelNames(),
    })
    if (isFailure(parsed)) return refuse(scene, parsed)
    if (isPayload(parsed)) return sendPayload(exchange, parsed, headers())
    const knobs = this.#knobsFor(parsed.model, request.headers['x-mock'])
    if (knobs instanceof Error) return refuse(scene, dialect.failure(400, knobs.message))
    await this.#answer({ ...scene, parsed, knobs })
  }

  async #answer(
    scene: Parameters<typeof refuse>[0] & { parsed: ParsedRequest; knobs: Knobs },
  ): Promise<void> {
    const { exchange, dialect, parsed, knobs } = scene
    const { call } = exchange
    const nowMs = systemClock.now()
    // Each request has its own random stream, so that its draws do not affect others.
    const random = createRandom(this.#options.seed + Math.imul(call.number, 0x9e3779b9))
    const plan = planFor(knobs, random, nowMs - this.#slowSinceMs)
    const tokens = tokensOf(parsed, plan.tokens)
    const { model, streamed, promptTokens, reply } = parsed
    Object.assign(call, { model, streamed, promptTokens, completionTokens: tokens })
    this.log.weigh(call)
    if (promptTokens > plan.contextTokens) return refuse(scene, dialect.failures['context-window'])
    const lane = laneOf(call.key, model)
    const cached = (parsed.prompt && this.#cache?.use(lane, parsed.prompt, nowMs)) ?? NO_CACHE
    Object.assign(call, cached)
    const limits = this.#limits
    const weight = { promptTokens, ...cached, maxTokens: parsed.maxTokens, outputTokens: tokens }
    // Endpoints without a model are free.
    const taken = model === '' ? undefined : limits.take(lane, nowMs, weight)
    if (taken !== undefined && isExcess(taken)) {
      return refuse(scene, dialect.limited(taken, model), taken.waitMs)
    }
    if (taken !== undefined) this.log.admit(call, nowMs, taken)
    const answer = answerTo(parsed, { number: call.number, tokens, ...cached })
    await play({ ...scene, plan, reply }, answer)
    if (taken === undefined) return
    limits.settle(taken, systemClock.now(), { ...weight, outputTokens: call.tokensSent })
    call.charged = taken.cost
  }

  #admit(call: OpenCall, response: ServerResponse): Exchange {
    const { log } = this
    log.arrive(call)
    const exchange = new Exchange(call, { response, log, unref: this.#options.unref })
    this.#exchanges.add(exchange)
    response.once('close', () => this.#exchanges.delete(exchange))
    return exchange
  }

  #headersFor({ key, model, requestId }: OpenCall, dialect: Dialect): Record<string, string> {
    const isSilent = model === '' || quotaModel(this.#options.quota).isSilent === true
    const states = isSilent ? [] : this.#limits.states(laneOf(key, model), systemClock.now())
    return {
      [dialect.requestIdHeader]: requestId,
      ...dialect.limitHeaders(states, systemClock.wallMs()),
    }
  }

  /** The header wins over the model, and the model over the knobs for all. */
  #knobsFor(model: string, header: string | string[] | undefined): Knobs | Error {
    const layers = [this.#knobs, this.#models.get(model)]
    if (header === undefined) return layKnobs(layers)
    try {
      return layKnobs([...layers, validate('x-mock', parse(String(header)), readKnobs)])
    } catch (error) {
      return error as Error
    }
  }

  #modelNames(): string[] {
    return this.#models.size > 0 ? [...this.#models.keys()] : ['mock-model']
  }
}

function cacheOf({ promptCache }: Options): PromptCache | undefined {
  if (promptCache === false) return undefined
  const options = promptCache === true ? {} : promptCache
  return new PromptCache(validate('promptCache', options, readPromptCache))
}

function answerTo(
  parsed: ParsedRequest,
  { number, tokens, ...cached }: { number: number; tokens: number } & CacheUse,
): Answer {
  const { model, promptTokens } = parsed
  const token = (index: number) => tokenText(parsed, index)
  return {
    model,
    promptTokens,
    ...cached,
    number,
    tokens,
    createdMs: systemClock.wallMs(),
    isTruncated: isTruncated(parsed, tokens),
    token,
    text: () => Array.from({ length: tokens }, (_, index) => token(index)).join(''),
  }
}
