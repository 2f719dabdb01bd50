/**
 * One request from its first byte to its last: who asks, for what, which targets may answer it, and how
 * it ended. What is refused, by whom and why, goes back in the client's own format.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import {
  type BodyEnd,
  type CallContext,
  judgeStatus,
  type RunOptions,
  SpillwayError,
  type UserStanding,
} from 'spillway'
import type { Dispatcher } from 'undici'
import type { RouteConfig } from '../config/config.js'
import type { Asked, Protocol } from '../protocols/protocol.js'
import { readRequest } from './asked.js'
import type { Caller } from './callers.js'
import { faultOf, RequestError } from './complaint.js'
import { headersForVendor } from './headers.js'
import { Reply } from './reply.js'
import { HungUpError, type RequestBody, readBody } from './request-body.js'
import { requestIdFor } from './request-id.js'
import type { Aim, Site } from './site.js'
import type { AnswerListener, Usage, VendorAnswer } from './vendor-answer.js'

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
const HUNG_UP_STATUS = 499

/** Another target may do better. What protects this pod, or is for this user, holds for all of them. */
const WORTH_ANOTHER: ReadonlySet<string> = new Set([
  'CIRCUIT_OPEN',
  'VENDOR_LIMITED',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'CALL_TIMEOUT',
  'STORE_UNAVAILABLE',
])

/** What is known once the body has been read. */
interface Question {
  readonly route: RouteConfig
  readonly caller: Caller
  readonly body: RequestBody
  readonly asked: Asked
  readonly json: Record<string, unknown> | undefined
  readonly idempotent: boolean
  /** Ours, if the client has none and the vendor might see the request twice. */
  readonly idempotencyKey: string | undefined
}

export class Exchange implements AnswerListener {
  readonly #site: Site
  readonly #request: IncomingMessage
  readonly #reply: Reply
  readonly #path: string
  readonly #id: string
  readonly #arrivedMs = performance.now()
  readonly #leaving = new AbortController()
  #question: Question | undefined
  #caller: Caller | undefined
  #route: RouteConfig | undefined
  #aim: Aim | undefined
  #lane: string | undefined
  #attempts = 0
  #step = 0
  #waitedMs = 0
  #standing: UserStanding | undefined
  #end: BodyEnd | undefined
  #usage: Usage | undefined
  #error: unknown
  #protocol: Protocol | undefined

  constructor(site: Site, request: IncomingMessage, response: ServerResponse) {
    this.#site = site
    this.#request = request
    this.#path = pathOf(request.url ?? '/')
    this.#id = requestIdFor(request.headers['x-request-id'])
    this.#reply = new Reply(response, this.#id, this.#arrivedMs, () => site.draining)
    response.on('close', () => this.#onClose(response))
  }

  serve(): void {
    this.#serve().catch((error) => this.#fail(error))
  }

  onEnded(how: BodyEnd, usage: Usage | undefined): void {
    this.#end = how
    this.#usage = usage
    if (usage?.outputTokens !== undefined) this.#aim?.vendor.learn(this.#lane, usage.outputTokens)
  }

  async #serve(): Promise<void> {
    const { routes, callers, config } = this.#site
    const request = this.#request
    const { headers } = request
    const rows = routes.onPath(this.#path)
    const [first] = rows
    if (first === undefined) throw notFound(`nothing is at ${this.#path}`)
    const protocol = this.#site.protocolOf(first.route)
    this.#protocol = protocol
    this.#reply.speak(protocol)
    const caller = callers.find(protocol.callerKey(headers), headers)
    if (caller === undefined) throw unauthorized()
    this.#caller = caller
    const body = await readBody(request, config.body)
    const { asked, json } = readRequest(
      protocol,
      body,
      headers['content-type'],
      headers['content-length'],
    )
    const route = routes.forModel(rows, asked.model)
    if (route === undefined) throw noModel(asked.model)
    this.#route = route

    this.#question = this.#questionFor(route, caller, body, asked, json)
    if (asked.streamed && route.keepAliveMs !== undefined) this.#reply.keepAlive(route.keepAliveMs)
    await this.#ask(this.#question)
  }

  #questionFor(
    route: RouteConfig,
    caller: Caller,
    body: RequestBody,
    asked: Asked,
    json: Record<string, unknown> | undefined,
  ): Question {
    const { method = 'GET', headers } = this.#request
    const protocol = this.#protocol as Protocol
    const keyed = headers['idempotency-key'] !== undefined
    const unsafe = !IDEMPOTENT.has(method)
    return {
      route,
      caller,
      body,
      asked,
      json,
      // A body that passes through can be sent only once.
      idempotent: body.kind === 'whole' && (!unsafe || keyed || protocol.repeatable),
      idempotencyKey: unsafe && !keyed && protocol.repeatable ? randomUUID() : undefined,
    }
  }

  /** One target after the other, until one answers. Nothing has been sent to the client before. */
  async #ask(question: Question): Promise<void> {
    const aims = this.#site.aimsOf(question.route)
    const last = question.body.kind === 'whole' ? aims.length - 1 : 0
    for (let step = 0; ; step++) {
      const answer = await this.#askOne(question, aims[step] as Aim, step, step === last)
      if (answer !== undefined) return this.#pass(answer, question, aims[step] as Aim)
    }
  }

  /** Nothing: the next one should be asked. */
  async #askOne(
    question: Question,
    aim: Aim,
    step: number,
    isLast: boolean,
  ): Promise<VendorAnswer | undefined> {
    this.#step = step
    this.#aim = aim
    try {
      const answer = await this.#run(question, aim)
      // Until its first piece has come, another one can still take its place.
      const begun = answer.begin()
      if (begun !== undefined) await begun
      if (answer.failedAtOnce !== undefined) throw answer.failedAtOnce.error
      if (isLast || !judgeStatus(answer.status).retryable) return answer
      answer.cancel()
      return undefined
    } catch (error) {
      if (isLast || !this.#isWorthAnother(error)) throw error
      return undefined
    }
  }

  #isWorthAnother(error: unknown): boolean {
    if (this.#leaving.signal.aborted) return false
    return error instanceof SpillwayError ? WORTH_ANOTHER.has(error.code) : true
  }

  #run(question: Question, aim: Aim): Promise<VendorAnswer> {
    const { vendor, target } = aim
    const { asked, caller, idempotent } = question
    const lane = vendor.laneOf(target.model ?? asked.model, target)
    this.#lane = lane
    const hidesUsage = this.#hidesUsage(question, aim)
    const request = {
      method: (this.#request.method ?? 'GET') as Dispatcher.HttpMethod,
      path: this.#pathFor(question.route),
      headers: this.#headersFor(question, aim),
      body: this.#bodyFor(question, aim, hidesUsage),
    }
    const options: RunOptions = {
      priority: caller.priority,
      idempotent,
      signal: this.#leaving.signal,
    }
    if (lane !== undefined) options.lane = lane
    const cost = vendor.costOf(asked, lane)
    if (cost !== undefined) options.cost = cost
    const timeoutMs = this.#timeLeftMs(question.route)
    if (timeoutMs !== undefined) options.timeoutMs = timeoutMs
    // A request that has run at one target has been charged.
    if (this.#attempts === 0) this.#addUser(options, caller)
    return vendor.guard.run((context: CallContext) => {
      if (this.#attempts++ === 0) this.#waitedMs = performance.now() - this.#arrivedMs
      return vendor.send(request, context, this)
    }, options)
  }

  #addUser(options: RunOptions, { user, tier }: Caller): void {
    options.user = user
    if (tier !== undefined) options.tier = tier
    const { remoteAddress } = this.#request.socket
    if (remoteAddress !== undefined) options.ip = remoteAddress
    options.endpoint = this.#path
    options.onUserLimit = (standing) => {
      this.#standing = standing
    }
  }

  /** What the route allows, and what the client says it has left. */
  #timeLeftMs({ timeoutMs }: RouteConfig): number | undefined {
    const said = this.#request.headers['spillway-deadline-ms']
    const theirs = said === undefined ? Number.NaN : Number(said)
    if (timeoutMs === undefined && !(theirs >= 0)) return undefined
    const most = Math.min(timeoutMs ?? Number.POSITIVE_INFINITY, theirs >= 0 ? theirs : Infinity)
    return Math.max(0, most - (performance.now() - this.#arrivedMs))
  }

  #hidesUsage({ json }: Question, { vendor }: Aim): boolean {
    return json !== undefined && vendor.countsTokens && vendor.protocol.hidesUsage(this.#path, json)
  }

  #headersFor({ body, idempotencyKey }: Question, { ownHeaders, forward }: Aim): string[] {
    const headers = headersForVendor(this.#request.rawHeaders, forward)
    for (const each of ownHeaders) headers.push(each)
    if (idempotencyKey !== undefined) headers.push('idempotency-key', idempotencyKey)
    const length = this.#request.headers['content-length']
    if (body.kind === 'passing' && length !== undefined) headers.push('content-length', length)
    return headers
  }

  #bodyFor({ body, json }: Question, { vendor, target }: Aim, tellUsage: boolean) {
    if (body.kind === 'passing') return body.pieces
    if (json === undefined || (target.model === undefined && !tellUsage)) {
      return body.bytes.length === 0 ? undefined : body.bytes
    }
    return vendor.protocol.rewrite(json, { model: target.model, tellUsage })
  }

  #pathFor({ stripPrefix }: RouteConfig): string {
    const { url = '/' } = this.#request
    if (stripPrefix === undefined || !url.startsWith(stripPrefix)) return url
    const rest = url.slice(stripPrefix.length)
    return rest.startsWith('/') ? rest : `/${rest}`
  }

  #pass(answer: VendorAnswer, question: Question, aim: Aim): void {
    this.#reply.pass(answer, {
      decision: {
        vendor: aim.vendor.name,
        lane: this.#lane,
        attempts: this.#attempts,
        waitedMs: this.#waitedMs,
        step: this.#step,
        standing: this.#standing,
      },
      drop: this.#hidesUsage(question, aim) ? aim.vendor.protocol.isUsageEvent : undefined,
      // It has been tried often enough: a client that tries again would multiply.
      final: !answer.ok && judgeStatus(answer.status).retryable,
    })
  }

  #fail(error: unknown): void {
    this.#error = error
    if (error instanceof HungUpError || this.#leaving.signal.aborted) return this.#reply.abandon()
    const fault = faultOf(error, this.#aim?.vendor.name)
    if (fault.status === 413) this.#request.resume()
    this.#reply.refuse(error, fault, this.#attempts)
  }

  #onClose(response: ServerResponse): void {
    if (!response.writableFinished) {
      this.#leaving.abort(new DOMException('the client hung up', 'AbortError'))
    }
    this.#reply.close()
    this.#site.onRecord(this.#record(response))
  }

  #record(response: ServerResponse) {
    const error = this.#error ?? this.#reply.error
    const fault = error === undefined ? undefined : faultOf(error, this.#aim?.vendor.name)
    const left = !response.headersSent && this.#leaving.signal.aborted
    const { firstByteMs } = this.#reply
    return {
      id: this.#id,
      method: this.#request.method ?? 'GET',
      path: this.#path,
      route: this.#route?.name,
      user: this.#caller?.user,
      tier: this.#caller?.tier,
      priority: this.#caller?.priority,
      model: this.#question?.asked.model,
      streamed: this.#question?.asked.streamed ?? false,
      status: left ? HUNG_UP_STATUS : response.statusCode,
      code: left ? 'HUNG_UP' : fault?.code,
      stage: error instanceof SpillwayError ? error.stage : undefined,
      vendor: this.#aim?.vendor.name,
      attempts: this.#attempts,
      step: this.#step,
      waitedMs: tenths(this.#waitedMs),
      firstByteMs: firstByteMs === undefined ? undefined : tenths(firstByteMs),
      durationMs: tenths(performance.now() - this.#arrivedMs),
      end: this.#end,
      usage: this.#usage,
    }
  }
}

/** More digits say nothing, and cost room in every line of a log. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

function pathOf(url: string): string {
  const question = url.indexOf('?')
  return question === -1 ? url : url.slice(0, question)
}

function notFound(message: string): RequestError {
  return new RequestError({ status: 404, code: 'NOT_FOUND', message })
}

function noModel(model: string | undefined): RequestError {
  const what = model === undefined ? 'a request without a model' : `the model ${model}`
  return new RequestError({ status: 404, code: 'NO_ROUTE', message: `no route takes ${what}` })
}

function unauthorized(): RequestError {
  const message = 'the API key is missing or unknown'
  return new RequestError({ status: 401, code: 'UNKNOWN_KEY', message })
}
