/**
 * One request from its first byte to its last: who asks, for what, which targets may answer it, and how
 * it ended. What is refused, by whom and why, goes back in the client's own format.
 */
import type { IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import { type CallContext, type RunOptions, SpillwayError } from 'spillway'
import { clientNetwork, judgeStatus } from 'spillway/http'
import { type BodyEnd, LeaveSignal, type UserStanding } from 'spillway/internal'
import type { RouteConfig } from '../config/config.js'
import { anthropic } from '../protocols/anthropic.js'
import { openai } from '../protocols/openai.js'
import { HungUpError } from '../request/body.js'
import { requestTarget } from '../request/canonical-path.js'
import { parseRequest } from '../request/parse-request.js'
import { faultInLlmPath } from '../request/request-url.js'
import { ambiguous, notFound } from '../routing/no-route.js'
import type { RouteQuery } from '../routing/routes.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import { neverConnected } from '../vendor/vendor-error.js'
import type { ClientResponse } from '../wire/client.js'
import type { PlainRequest } from '../wire/plain-request.js'
import type { Aim } from './aim.js'
import { absolve, blame } from './blame.js'
import type { Caller } from './callers.js'
import { type Fault, faultOf, RequestError } from './complaint.js'
import { deadlineMs } from './deadline-header.js'
import type { Deferral } from './deferral.js'
import { faultIn } from './intake.js'
import { outgoing } from './outgoing.js'
import { Patience } from './patience.js'
import { pickOrder } from './pick.js'
import { holdsKey, MASK, presentableName, presentablePath } from './presentable.js'
import { canBeSentTo, mayBeSentAgain, type Question, questionOf } from './question.js'
import type { RequestRecord, Tries } from './record.js'
import { Reply } from './reply.js'
import { requestIdFor } from './request-id.js'
import type { Site } from './site.js'
import { type RequestTrace, withTrace } from './trace.js'
import type { AnswerListener, Usage, VendorAnswer } from './vendor-answer.js'

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

export class Exchange implements AnswerListener {
  readonly #site: Site
  readonly #request: IncomingMessage | PlainRequest
  readonly #response: ClientResponse
  readonly #reply: Reply
  readonly #path: string
  readonly #id: string
  readonly #arrivedMs = performance.now()
  readonly #leaving = new LeaveSignal()
  readonly #trace: RequestTrace | undefined
  #caller: Caller | undefined
  #route: RouteConfig | undefined
  #question: Question | undefined
  /** Those that were asked, in order; the last one is being asked, or has answered. */
  readonly #tries: Tries[] = []
  #aim: Aim | undefined
  #lane: string | undefined
  /** What it cost was asked for by us, not by the client. */
  #asksUsage = false
  #waitedMs = 0
  #standing: UserStanding | undefined
  /** Stages in shadow that would have refused it. */
  #shadow: string[] | undefined
  #answer: VendorAnswer | undefined
  #end: BodyEnd | undefined
  #usage: Usage | undefined
  #closed = false
  #patience: Patience | undefined

  constructor(site: Site, request: IncomingMessage | PlainRequest, response: ClientResponse) {
    this.#site = site
    this.#request = request
    this.#response = response
    this.#path = requestTarget(request.url ?? '/').path
    this.#id = requestIdFor(request.headers)
    this.#trace = site.hooks.tracer?.begin(request, this.#shownPath)
    this.#reply = new Reply(response, this.#id, this.#arrivedMs, site.hooks)
  }

  serve(): void {
    this.#serve().catch((error) => this.#fail(error))
  }

  /** Its connection is gone, or its answer is. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    // Unless it was us who hung up.
    if (!this.#response.writableFinished && this.#reply.error === undefined) {
      this.#leaving.abort(new HungUpError('the client hung up'))
    }
    this.#reply.close()
    const record = this.#record()
    this.#trace?.end(record)
    this.#site.hooks.onRecord(record)
  }

  /** Now and then: whether the client still does its part. */
  look(nowMs: number): void {
    this.#patience ??= new Patience(this.#request)
    const body = this.#question?.parsed.body
    const waiting = body === undefined || (body.kind === 'streamed' && body.progress.waiting)
    const tooSlow = this.#patience.isOver(nowMs, waiting, this.#site.config.server)
    if (tooSlow) this.#cutOff(slowBody())
  }

  /** The gateway is closed before it is over. */
  closeWith(fault: Fault): void {
    if (!this.#request.complete) return this.#cutOff(new RequestError(fault))
    if (!this.#response.writableFinished) this.#reply.error ??= new RequestError(fault)
  }

  /** What follows on its connection is no HTTP. */
  breakOff(fault: Fault): void {
    if (!this.#request.complete) return this.#cutOff(new RequestError(fault))
    this.#response.shouldKeepAlive = false
    const { socket } = this.#request
    this.#response.once('finish', () => socket.destroySoon())
  }

  /** Its body will not come. */
  #cutOff(error: RequestError): void {
    if (this.#reply.error !== undefined) return void this.#request.socket.destroy()
    this.#leaving.abort(error)
    // While the body is read nobody else hears of it.
    if (this.#question === undefined) this.#fail(error)
  }

  onEnded(how: BodyEnd, usage: Usage | undefined, status: number): void {
    this.#end = how
    this.#usage = usage
    const whole = how === 'complete' || usage?.outputTokens !== undefined
    if (!whole || status >= 300 || this.#aim === undefined) return
    const { vendor, target } = this.#aim
    const { model, answers = 1 } = this.#question?.facts ?? {}
    vendor.answered(target.model ?? model, target, { outputTokens: usage?.outputTokens, answers })
  }

  async #serve(): Promise<void> {
    const { routes, callers, config, hooks } = this.#site
    const { deferral } = hooks
    const request = this.#request
    const { headers } = request
    const fault = faultIn(request, config.server)
    if (fault !== undefined) throw new RequestError(fault)
    if (deferral?.owns(this.#path)) return this.#attend(deferral)
    const query: RouteQuery = {
      method: request.method ?? 'GET',
      path: this.#path,
      fromAnthropicClient: headers['anthropic-version'] !== undefined,
    }
    const { kind, rows } = routes.find(query)
    const [first] = rows
    if (first === undefined) throw this.#noRoute(query)
    const protocol = this.#site.protocolOf(first.route)
    this.#reply.speak(protocol)
    const key = protocol.callerKey(headers)
    const caller = callers.find(key, request)
    if (caller === undefined) throw unauthorized()
    this.#caller = caller
    const pathFault = protocol.name === 'http' ? undefined : faultInLlmPath(this.#path)
    if (pathFault !== undefined) throw new RequestError(pathFault)
    if (kind === 'ambiguous') {
      throw ambiguous({ query, shownPath: this.#shownPath, routes: config.routes })
    }
    const parsing = parseRequest(request, {
      protocol,
      path: this.#path,
      contentDecides: this.#site.contentDecides(rows),
      limits: config.body,
      onFault: (error) => this.#leaving.abort(error),
    })
    const parsed = parsing instanceof Promise ? await parsing : parsing
    const { model } = parsed.facts
    if (holdsKey(this.#path, key) || holdsKey(model, key)) throw misplacedKey()
    const route = routes.forModel(rows, model)
    if (route === undefined) throw noModel(model)
    this.#route = route
    const question = questionOf(request, protocol, { route, caller, path: this.#path, parsed })
    this.#question = question
    const aim = this.#site.aimsOf(route).find((each) => canBeSentTo(question, each))
    if (aim === undefined) throw cannotReplaceModel()
    const later = deferral?.defer(request, question, aim)
    if (later !== undefined) return this.#reply.say(await later)
    if (question.facts.streamed && route.keepAliveMs !== undefined) {
      this.#reply.keepAlive(route.keepAliveMs)
    }
    await this.#ask(question)
  }

  #noRoute(query: RouteQuery): RequestError {
    // Another spelling of a path that has a route is refused as it would be on that route.
    const fault = this.#path.startsWith('/v1') ? faultInLlmPath(this.#path) : undefined
    if (fault !== undefined) return new RequestError(fault)
    const { callers, config } = this.#site
    const { headers } = this.#request
    this.#reply.speak(query.fromAnthropicClient ? anthropic : openai)
    const isKnownCaller = [openai, anthropic].some(
      ({ callerKey }) => callers.find(callerKey(headers), this.#request) !== undefined,
    )
    const shownPath = this.#shownPath
    return notFound({ query, shownPath, routes: config.routes, isKnownCaller })
  }

  /** It is about something that was asked for before. */
  async #attend(deferral: Deferral): Promise<void> {
    const known = (caller: Caller) => {
      this.#caller = caller
    }
    const said = await deferral.attend(this.#request, this.#response, this.#path, known)
    if (said !== undefined) this.#reply.say(said)
  }

  /**
   * One target after the other, until one answers. Nothing has been sent to the client before. In one
   * function, because each that is awaited costs every request.
   */
  async #ask(question: Question): Promise<void> {
    const { route } = question
    const all = this.#site.aimsOf(route)
    const ordered = route.choices === 1 ? all : pickOrder(all, route.choices, question.facts.model)
    const aims = ordered.filter((each) => canBeSentTo(question, each))
    const last = aims.length - 1
    for (let step = 0; ; step++) {
      const aim = aims[step] as Aim
      const tries = { vendor: aim.vendor.name, attempts: 0 }
      this.#aim = aim
      this.#tries.push(tries)
      try {
        const answer = await this.#run(question, aim, tries)
        this.#answer = answer
        if (step < last && this.#isForAnother(question, answer.status)) {
          this.#discard(answer)
          continue
        }
        // Until its first piece has come, another one can still take its place.
        const begun = answer.begin()
        if (begun !== undefined) await begun
        if (question.facts.streamed) answer.demandEvents()
        if (answer.failure !== undefined) throw answer.failure.error
        return this.#pass(answer, question, aim)
      } catch (error) {
        if (step === last || !this.#isWorthAnother(question, error, tries)) throw error
      }
    }
  }

  #isForAnother(question: Question, status: number): boolean {
    return judgeStatus(status).retryable && this.#mayAskAnother(question, status === 429)
  }

  #isWorthAnother(question: Question, error: unknown, { attempts }: Tries): boolean {
    if (error instanceof RequestError) return false
    if (error instanceof SpillwayError && !WORTH_ANOTHER.has(error.code)) return false
    return this.#mayAskAnother(question, attempts === 0 || neverConnected(error))
  }

  #discard(answer: VendorAnswer): void {
    answer.cancel()
    this.#answer = undefined
  }

  /** `untouched`: the last one has done nothing with it. */
  #mayAskAnother(question: Question, untouched: boolean): boolean {
    if (this.#leaving.aborted) return false
    const { body } = question.parsed
    if (body.kind === 'streamed' && body.progress.begun) return false
    return untouched || mayBeSentAgain(question)
  }

  #run(question: Question, aim: Aim, tries: Tries): Promise<VendorAnswer> {
    const { vendor, target } = aim
    const { facts, caller, generates } = question
    const { body } = question.parsed
    const lane = vendor.laneOf(target.model ?? facts.model, target)
    this.#lane = lane
    this.#asksUsage = this.#hidesUsage(question, aim)
    const request = outgoing(this.#request, question, aim, this.#asksUsage)
    const cost = generates ? vendor.costOf(facts, lane) : undefined
    if (body.kind === 'streamed' && !body.progress.complete) blame(this.#leaving, 'uploading')
    // A request that has run at one target has been charged.
    const charged = this.#attempts > 0
    // In one piece: one that gets its functions afterwards keeps its call from being collected early.
    const options: RunOptions = {
      priority: caller.priority,
      idempotent: mayBeSentAgain(question),
      signal: this.#leaving,
      lane,
      cost,
      timeoutMs: this.#timeLeftMs(question.route),
      user: charged ? undefined : caller.user,
      tier: charged ? undefined : caller.tier,
      ip: charged ? undefined : clientNetwork(this.#request.socket.remoteAddress ?? ''),
      endpoint: charged ? undefined : this.#path,
      onUserLimit: (standing) => {
        this.#standing = standing
      },
      traceParent: this.#trace?.context,
      onShadow: vendor.shadows ? ({ stage }) => this.#noteShadow(stage) : undefined,
    }
    return vendor.guard.run((context: CallContext) => {
      if (tries.attempts++ === 0) this.#waitedMs = performance.now() - this.#arrivedMs
      const traced = this.#trace === undefined ? request : this.#inTrace(request, context)
      return vendor.send(traced, context, this, cost)
    }, options)
  }

  /** What the route allows, and what the client says it has left. */
  #timeLeftMs({ timeoutMs = Number.POSITIVE_INFINITY }: RouteConfig): number | undefined {
    const theirs = deadlineMs(this.#request.headers['spillway-deadline-ms'])
    const impatient = theirs >= 0 && theirs < timeoutMs
    if (!impatient && timeoutMs === Number.POSITIVE_INFINITY) return undefined
    if (impatient) blame(this.#leaving, 'impatient')
    const elapsedMs = performance.now() - this.#arrivedMs
    return Math.max(0, (impatient ? theirs : timeoutMs) - elapsedMs)
  }

  #hidesUsage({ parsed: { json } }: Question, { vendor }: Aim): boolean {
    if (json === undefined || !vendor.countsTokens) return false
    return vendor.protocol.hidesUsage(this.#path, json.fields)
  }

  #pass(answer: VendorAnswer, question: Question, { vendor, addresses }: Aim): void {
    absolve(this.#leaving)
    this.#reply.pass(answer, {
      decision: {
        vendor: vendor.name,
        lane: this.#lane,
        attempts: this.#attempts,
        waitedMs: this.#waitedMs,
        step: this.#tries.length - 1,
        standing: this.#standing,
        shadow: this.#shadow,
      },
      drop: this.#asksUsage ? vendor.protocol.isUsageEvent : undefined,
      // It has been tried often enough: a client that tries again would multiply.
      final: vendor.retries && mayBeSentAgain(question) && judgeStatus(answer.status).retryable,
      addresses,
    })
  }

  #inTrace(request: VendorRequest, { traceHeaders }: CallContext): VendorRequest {
    const told = this.#site.hooks.tracer?.toVendors === true ? traceHeaders : undefined
    return { ...request, headers: withTrace(request.headers, told) }
  }

  #noteShadow(stage: string): void {
    this.#shadow ??= []
    if (!this.#shadow.includes(stage)) this.#shadow.push(stage)
  }

  get #attempts(): number {
    let attempts = 0
    for (const each of this.#tries) attempts += each.attempts
    return attempts
  }

  #fail(error: unknown): void {
    // It has been told, and this is what came of that.
    if (this.#reply.error !== undefined) return
    this.#answer?.cancel()
    if (this.#closed || this.#reason(error) instanceof HungUpError) return this.#reply.abandon()
    const attempts = this.#attempts
    const fault = faultOf(this.#reason(error), this.#aim?.vendor.name, attempts > 0)
    if (fault.code === 'INTERNAL') this.#site.hooks.onFailure(error)
    // What still comes is read and forgotten, or its sender would not read the answer.
    if (fault.closes) this.#request.resume()
    const asked = this.#tries.findLast((each) => each.attempts > 0)?.vendor
    this.#reply.refuse(this.#reason(error), fault, attempts, asked)
  }

  get #shownPath(): string {
    const { authorization, 'x-api-key': key } = this.#request.headers
    const presented = authorization?.slice(authorization.lastIndexOf(' ') + 1)
    if (holdsKey(this.#path, key) || holdsKey(this.#path, presented)) return MASK
    return presentablePath(this.#path)
  }

  /** The client's side counts more than what it did to the vendor's. */
  #reason(error: unknown): unknown {
    return this.#leaving.aborted ? this.#leaving.reason : error
  }

  #record(): RequestRecord {
    const response = this.#response
    const { firstByteMs } = this.#reply
    const left = this.#leaving.reason instanceof HungUpError
    const { error } = this.#reply
    const fault = error === undefined ? undefined : faultOf(error, undefined, this.#attempts > 0)
    return {
      id: this.#id,
      method: this.#request.method ?? 'GET',
      path: this.#shownPath,
      route: this.#route?.name,
      user: presentable(this.#caller?.user),
      tier: presentable(this.#caller?.tier),
      priority: this.#caller?.priority,
      model: presentable(this.#question?.facts.model),
      streamed: this.#question?.facts.streamed ?? false,
      status: left && !response.headersSent ? HUNG_UP_STATUS : response.statusCode,
      code: left ? 'HUNG_UP' : fault?.code,
      stage: error instanceof SpillwayError ? error.stage : undefined,
      vendor: this.#aim?.vendor.name,
      tries: this.#tries,
      attempts: this.#attempts,
      waitedMs: tenths(this.#waitedMs),
      firstByteMs: firstByteMs === undefined ? undefined : tenths(firstByteMs),
      durationMs: tenths(performance.now() - this.#arrivedMs),
      end: this.#end,
      shadow: this.#shadow,
      usage: this.#usage,
    }
  }
}

/** More digits say nothing, and cost room in every line of a log. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

function presentable(name: string | undefined): string | undefined {
  return name === undefined ? undefined : presentableName(name)
}

function misplacedKey(): RequestError {
  const message = 'the API key stands in the path or in the model, where it would be shown'
  return new RequestError({ status: 400, code: 'MISPLACED_KEY', message })
}

function cannotReplaceModel(): RequestError {
  const message = 'this route replaces the model, which is only possible in a JSON body'
  return new RequestError({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', message })
}

function slowBody(): RequestError {
  const message = 'the body did not come in time'
  return new RequestError({ status: 408, code: 'SLOW_BODY', message, closes: true })
}

function noModel(model: string | undefined): RequestError {
  const what =
    model === undefined ? 'a request without a model' : `the model ${presentableName(model)}`
  return new RequestError({ status: 404, code: 'NO_ROUTE', message: `no route takes ${what}` })
}

function unauthorized(): RequestError {
  const message = 'the API key is missing or unknown'
  return new RequestError({ status: 401, code: 'UNKNOWN_KEY', message })
}
