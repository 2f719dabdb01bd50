/**
 * One request from its first byte to its last: identifies the caller, chooses the route, tries its targets, passes the
 * answer on and records how it ended. Refusals are answered in the format of the client's protocol.
 */
import { performance } from 'node:perf_hooks'
import { type CallContext, type RunOptions, SpillwayError } from 'spillway'
import { clientNetwork, judgeStatus } from 'spillway/http'
import type { BodyEnd, UserStanding } from 'spillway/internal'
import type { RouteConfig } from '../config/config.js'
import { anthropic } from '../protocols/anthropic.js'
import { openai } from '../protocols/openai.js'
import { ResponseWriter } from '../response/client-response.js'
import { answerPreflight, corsHeaders, isPreflight } from '../response/cors.js'
import { type Fault, faultOf, RequestError, SHUTTING_DOWN } from '../response/errors.js'
import { containsKey, MASK, maskedName, maskedPath, requestIdFor } from '../response/privacy.js'
import type { ConfigVersion } from '../routing/config-version.js'
import { ambiguous, notFound } from '../routing/no-route.js'
import type { RouteQuery } from '../routing/routes.js'
import { orderTargets, type Target } from '../routing/target.js'
import type { Vendor } from '../vendor/vendor.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import { neverConnected } from '../vendor/vendor-error.js'
import { vendorRequest } from '../vendor/vendor-request.js'
import type { ResponseListener, Usage, VendorResponse } from '../vendor/vendor-response.js'
import type { AsyncRequests } from './async-requests.js'
import { HungUpError } from './body/body.js'
import type { Caller } from './callers.js'
import { type ClientRequest, type ClientResponse, disconnect, isSent } from './client-http.js'
import { ClientSignal, deadlineMs, HOP_NEEDS_MS, hopHeaders, runAsHop } from './deadline.js'
import { parseRequest } from './parse-request.js'
import type { RequestRecord, Tries } from './record.js'
import { faultInLlmPath, requestTarget } from './request-url.js'
import { canBeRepeated, canBeSentTo, type RoutedRequest, routedRequest } from './routed-request.js'
import { SlowBody } from './slow-body.js'
import { type RequestTrace, withTrace } from './trace.js'
import { validateRequest } from './validate.js'

const HUNG_UP_STATUS = 499

/** Refusals after which the next target is tried. All others would be the same there. */
const WORTH_ANOTHER: ReadonlySet<string> = new Set([
  'CIRCUIT_OPEN',
  'THROTTLED',
  'VENDOR_LIMITED',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'CALL_TIMEOUT',
  'STORE_UNAVAILABLE',
])

export class Exchange implements ResponseListener {
  /** The configuration in force when the request arrived. */
  readonly version: ConfigVersion
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #writer: ResponseWriter
  readonly #path: string
  readonly #id: string
  readonly #arrivedMs = performance.now()
  readonly #leaving = new ClientSignal()
  readonly #trace: RequestTrace | undefined
  #caller: Caller | undefined
  #route: RouteConfig | undefined
  #routed: RoutedRequest | undefined
  /** The targets tried so far, in order. The last one is being tried, or has answered. */
  readonly #tries: Tries[] = []
  #target: Target | undefined
  #lane: string | undefined
  /** The gateway requested the usage of the stream; the client did not. */
  #asksUsage = false
  #waitedMs = 0
  #standing: UserStanding | undefined
  /** Stages in shadow that would have refused it. */
  #shadow: string[] | undefined
  #answer: VendorResponse | undefined
  #end: BodyEnd | undefined
  #usage: Usage | undefined
  #closed = false
  /** The connection ends with this answer, because no request can follow. */
  #isLast = false
  #slowBody: SlowBody | undefined
  #receivedBytes = 0
  /** Of its body, in memory. */
  #heldBytes = 0
  /** The client sends its body only after a 100, which it has not received. */
  #owesContinue: boolean

  constructor(
    version: ConfigVersion,
    request: ClientRequest,
    response: ClientResponse,
    expectsContinue: boolean,
  ) {
    this.#owesContinue = expectsContinue
    this.version = version
    this.#request = request
    this.#response = response
    this.#path = requestTarget(request.url ?? '/').path
    this.#id = requestIdFor(request.headers)
    this.#trace = version.hooks.tracer?.begin(request, this.#shownPath)
    this.#writer = new ResponseWriter(response, this.#id, this.#arrivedMs, version.hooks)
  }

  serve(): void {
    runAsHop(this.#request, () => this.#serve()).catch((error) => this.#fail(error))
  }

  /** The connection was closed, or the answer was sent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    // Unless the gateway itself closed the connection.
    if (!isSent(this.#response) && this.#writer.error === undefined) {
      this.#leaving.abort(new HungUpError('the client disconnected'))
    }
    this.#writer.close()
    this.version.hooks.bodyMemory.giveBack(this.#heldBytes)
    this.#heldBytes = 0
    const record = this.#record()
    this.#trace?.end(record)
    this.version.hooks.onRecord(record)
  }

  /** Called about once a second. Ends the request if its body arrives too slowly. */
  look(nowMs: number): void {
    this.#slowBody ??= new SlowBody(this.#request)
    const body = this.#routed?.parsed.body
    const waiting = body === undefined || (body.kind === 'streamed' && body.progress.waiting)
    const tooSlow = this.#slowBody.isOver(
      nowMs,
      this.#receivedBytes,
      waiting,
      this.version.config.server,
    )
    if (tooSlow) this.#cutOff(slowBody())
  }

  /** The gateway shuts down while the request is running. */
  closeWith(fault: Fault): void {
    if (!this.#request.complete) return this.#cutOff(new RequestError(fault))
    if (!isSent(this.#response)) this.#writer.error ??= new RequestError(fault)
  }

  /** The bytes that follow on the connection are not HTTP. */
  breakOff(fault: Fault): void {
    if (!this.#request.complete) return this.#cutOff(new RequestError(fault))
    // Node reports every packet that follows.
    if (this.#isLast) return
    this.#isLast = true
    this.#response.shouldKeepAlive = false
    const { socket } = this.#request
    this.#response.once('finish', () => socket.destroySoon())
  }

  /** Bytes of its answer that wait to be sent. */
  get unsentBytes(): number {
    return this.#response.writableLength
  }

  /** Bytes of the vendor's answer that were sent. It grows as long as the client reads. */
  get sentBytes(): number {
    return this.#writer.passedBytes - this.unsentBytes
  }

  disconnect(): void {
    disconnect(this.#request)
  }

  /** The caller's key is valid, so the client may send the body. */
  #continue(): void {
    if (this.#owesContinue) this.#response.writeContinue()
    this.#owesContinue = false
  }

  /** The rest of the body will not arrive. */
  #cutOff(error: RequestError): void {
    if (this.#writer.error !== undefined) return this.disconnect()
    this.#leaving.abort(error)
    // While the body is being read, nothing else listens to the signal.
    if (this.#routed === undefined) this.#fail(error)
  }

  onEnded(how: BodyEnd, usage: Usage | undefined, status: number): void {
    this.#end = how
    this.#usage = usage
    const whole = how === 'complete' || usage?.outputTokens !== undefined
    if (!whole || status >= 300 || this.#target === undefined) return
    const { vendor, config } = this.#target
    const { model, answers = 1 } = this.#routed?.facts ?? {}
    vendor.answered(config.model ?? model, config, { outputTokens: usage?.outputTokens, answers })
  }

  async #serve(): Promise<void> {
    const { routes, callers, config, hooks } = this.version
    const { asyncRequests } = hooks
    const request = this.#request
    const { headers } = request
    const fault = validateRequest(request, config.server)
    if (fault !== undefined) throw new RequestError(fault)
    if (config.cors !== undefined) {
      this.#writer.addHeaders(corsHeaders(config.cors, headers))
      if (isPreflight(request.method, headers)) {
        return this.#writer.say(answerPreflight(config.cors, headers))
      }
    }
    if (asyncRequests?.owns(this.#path)) return this.#attend(asyncRequests)
    const query: RouteQuery = {
      method: request.method ?? 'GET',
      path: this.#path,
      fromAnthropicClient: headers['anthropic-version'] !== undefined,
    }
    const { kind, rows } = routes.find(query)
    const [first] = rows
    if (first === undefined) throw this.#noRoute(query)
    const protocol = this.version.protocolOf(first.route)
    this.#writer.speak(protocol)
    const key = protocol.callerKey(headers)
    const caller = callers.find(key, request)
    if (caller === undefined) throw unauthorized()
    this.#caller = caller
    const pathFault = protocol.name === 'http' ? undefined : faultInLlmPath(this.#path)
    if (pathFault !== undefined) throw new RequestError(pathFault)
    if (kind === 'ambiguous') {
      throw ambiguous({ query, shownPath: this.#shownPath, routes: config.routes })
    }
    const parsed = await parseRequest(request, {
      protocol,
      path: this.#path,
      contentDecides: this.version.contentDecides(rows),
      limits: config.body,
      onReading: () => this.#continue(),
      onReceived: (bytes) => {
        this.#receivedBytes += bytes
      },
      onHeld: (bytes) => {
        // It was refused meanwhile, because it is too slow or the gateway shuts down.
        if (this.#writer.error !== undefined) throw this.#writer.error
        hooks.bodyMemory.take(bytes, config.body.maxTotalBytes)
        this.#heldBytes += bytes
      },
      onFault: (error) => this.#leaving.abort(error),
    })
    const { model } = parsed.facts
    if (containsKey(this.#path, key) || containsKey(model, key)) throw misplacedKey()
    const route = routes.forModel(rows, model)
    if (route === undefined) throw noModel(model)
    this.#route = route
    const routed = routedRequest(request, protocol, { route, caller, path: this.#path, parsed })
    this.#routed = routed
    const target = this.version.targetsOf(route).find((each) => canBeSentTo(routed, each))
    if (target === undefined) throw cannotReplaceModel()
    const later = asyncRequests?.defer(request, routed, target)
    if (later !== undefined) return this.#writer.say(await later)
    if (routed.facts.streamed && route.keepAliveMs !== undefined) {
      this.#writer.keepAlive(route.keepAliveMs)
    }
    await this.#ask(routed)
  }

  #noRoute(query: RouteQuery): RequestError {
    // Another spelling of a path that has a route is refused as it would be on that route.
    const fault = this.#path.startsWith('/v1') ? faultInLlmPath(this.#path) : undefined
    if (fault !== undefined) return new RequestError(fault)
    const { callers, config } = this.version
    const { headers } = this.#request
    this.#writer.speak(query.fromAnthropicClient ? anthropic : openai)
    const isKnownCaller = [openai, anthropic].some(
      ({ callerKey }) => callers.find(callerKey(headers), this.#request) !== undefined,
    )
    const shownPath = this.#shownPath
    return notFound({ query, shownPath, routes: config.routes, isKnownCaller })
  }

  /** The request is about a job. */
  async #attend(asyncRequests: AsyncRequests): Promise<void> {
    const said = await asyncRequests.attend(this.#request, this.#response, this.#path, {
      onCaller: (caller) => {
        this.#caller = caller
      },
      onShutdown: () => {
        this.#writer.error ??= new RequestError(SHUTTING_DOWN)
      },
    })
    if (said !== undefined) this.#writer.say(said)
  }

  /**
   * Tries one target after the other until one answers. Nothing was sent to the client before that. It is one
   * function, because each further `await` costs every request time.
   */
  async #ask(routed: RoutedRequest): Promise<void> {
    const { route } = routed
    const all = this.version.targetsOf(route)
    const ordered = route.choices === 1 ? all : orderTargets(all, route.choices, routed.facts.model)
    const targets = ordered.filter((each) => canBeSentTo(routed, each))
    const last = targets.length - 1
    for (let step = 0; ; step++) {
      const target = targets[step] as Target
      const tries = { vendor: target.vendor.name, attempts: 0 }
      this.#target = target
      this.#tries.push(tries)
      try {
        const answer = await this.#run(routed, target, tries)
        this.#answer = answer
        if (step < last && this.#isForAnother(routed, answer.status)) {
          this.#discard(answer)
          continue
        }
        // Until the first chunk has arrived, the next target can still be tried.
        const begun = answer.begin()
        if (begun !== undefined) await begun
        if (routed.facts.streamed) answer.demandEvents()
        if (answer.failure !== undefined) throw answer.failure.error
        return this.#pass(answer, routed, target)
      } catch (error) {
        if (step === last || !this.#isWorthAnother(routed, error, tries)) throw error
      }
    }
  }

  #isForAnother(routed: RoutedRequest, status: number): boolean {
    return judgeStatus(status).retryable && this.#mayAskAnother(routed, status === 429)
  }

  #isWorthAnother(routed: RoutedRequest, error: unknown, { attempts }: Tries): boolean {
    if (error instanceof RequestError) return false
    if (error instanceof SpillwayError && !WORTH_ANOTHER.has(error.code)) return false
    return this.#mayAskAnother(routed, attempts === 0 || neverConnected(error))
  }

  #discard(answer: VendorResponse): void {
    answer.cancel()
    this.#answer = undefined
  }

  /** `untouched`: the last target did not process the request. */
  #mayAskAnother(routed: RoutedRequest, untouched: boolean): boolean {
    if (this.#leaving.aborted) return false
    const { body } = routed.parsed
    if (body.kind === 'streamed' && body.progress.begun) return false
    return untouched || canBeRepeated(routed)
  }

  #run(routed: RoutedRequest, target: Target, tries: Tries): Promise<VendorResponse> {
    const { vendor, config } = target
    const { facts, caller, generates } = routed
    const { body } = routed.parsed
    const lane = vendor.laneOf(config.model ?? facts.model, config)
    this.#lane = lane
    this.#asksUsage = this.#hidesUsage(routed, target)
    const request = vendorRequest(this.#request, routed, target, this.#asksUsage)
    const cost = generates ? vendor.costOf(facts, lane) : undefined
    if (body.kind === 'streamed' && !body.progress.complete) this.#leaving.cause = 'upload'
    // User limits were charged at the first target that received the request.
    const charged = this.#attempts > 0
    // One object literal: adding the functions later would keep the call from being collected early.
    const options: RunOptions = {
      priority: caller.priority,
      idempotent: canBeRepeated(routed),
      signal: this.#leaving,
      lane,
      cost,
      timeoutMs: this.#timeLeftMs(routed.route),
      needsMs: vendor.hops ? HOP_NEEDS_MS : undefined,
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
      const sent = vendor.hops ? withHeaders(traced, hopHeaders(context)) : traced
      return vendor.send(sent, context, this, cost)
    }, options)
  }

  /** The shorter of the route's `timeoutMs` and the client's deadline. Undefined if there is neither. */
  #timeLeftMs({ timeoutMs = Number.POSITIVE_INFINITY }: RouteConfig): number | undefined {
    const theirs = deadlineMs(this.#request.headers['spillway-deadline-ms'])
    const impatient = theirs >= 0 && theirs < timeoutMs
    if (!impatient && timeoutMs === Number.POSITIVE_INFINITY) return undefined
    if (impatient) this.#leaving.cause = 'deadline'
    const elapsedMs = performance.now() - this.#arrivedMs
    return Math.max(0, (impatient ? theirs : timeoutMs) - elapsedMs)
  }

  #hidesUsage({ parsed: { json } }: RoutedRequest, { vendor }: Target): boolean {
    if (json === undefined || !vendor.countsTokens) return false
    return vendor.protocol.hidesUsage(this.#path, json.fields)
  }

  #pass(answer: VendorResponse, routed: RoutedRequest, { vendor, addresses }: Target): void {
    this.#leaving.cause = undefined
    this.#writer.pass(answer, {
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
      // Retries of the client would multiply with those of the gateway.
      final: this.#isFinal(answer, routed, vendor),
      addresses,
    })
  }

  /** The gateway or a service behind it has retried, or has decided against it. */
  #isFinal(answer: VendorResponse, routed: RoutedRequest, vendor: Vendor): boolean {
    if (!judgeStatus(answer.status).retryable) return false
    if (vendor.hops && answer.header('spillway-retried') !== undefined) return true
    return vendor.retries && canBeRepeated(routed)
  }

  #inTrace(request: VendorRequest, { traceHeaders }: CallContext): VendorRequest {
    const told = this.version.hooks.tracer?.toVendors === true ? traceHeaders : undefined
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
    try {
      this.#refuse(error)
    } catch (another) {
      // No answer can be sent. Nothing above this function would catch the error.
      this.version.hooks.onFailure(another)
      this.disconnect()
    }
  }

  #refuse(error: unknown): void {
    // An error was answered before; this one is its consequence.
    if (this.#writer.error !== undefined) return
    this.#answer?.cancel()
    if (this.#closed || this.#reason(error) instanceof HungUpError) return this.#writer.abandon()
    const attempts = this.#attempts
    const fault = faultOf(this.#reason(error), this.#target?.vendor.name, attempts > 0)
    if (fault.code === 'INTERNAL') this.version.hooks.onFailure(error)
    // Without a 100 the client may send its body or not, so the next request on the connection cannot be found.
    if (this.#owesContinue) this.#response.shouldKeepAlive = false
    const asked = this.#tries.findLast((each) => each.attempts > 0)?.vendor
    this.#writer.refuse(this.#reason(error), fault, attempts, asked)
  }

  get #shownPath(): string {
    const { authorization, 'x-api-key': key } = this.#request.headers
    const presented = authorization?.slice(authorization.lastIndexOf(' ') + 1)
    if (containsKey(this.#path, key) || containsKey(this.#path, presented)) return MASK
    return maskedPath(this.#path)
  }

  /** A failure that the client caused takes precedence over its effect on the vendor's side. */
  #reason(error: unknown): unknown {
    return this.#leaving.aborted ? this.#leaving.reason : error
  }

  #record(): RequestRecord {
    const response = this.#response
    const { firstByteMs } = this.#writer
    const left = this.#leaving.reason instanceof HungUpError
    const { error } = this.#writer
    const fault = error === undefined ? undefined : faultOf(error, undefined, this.#attempts > 0)
    return {
      id: this.#id,
      method: this.#request.method ?? 'GET',
      path: this.#shownPath,
      route: this.#route?.name,
      user: presentable(this.#caller?.user),
      tier: presentable(this.#caller?.tier),
      priority: this.#caller?.priority,
      model: presentable(this.#routed?.facts.model),
      streamed: this.#routed?.facts.streamed ?? false,
      status: left && !response.headersSent ? HUNG_UP_STATUS : response.statusCode,
      code: left ? 'HUNG_UP' : fault?.code,
      stage: error instanceof SpillwayError ? error.stage : undefined,
      vendor: this.#target?.vendor.name,
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

function withHeaders(request: VendorRequest, more: readonly string[]): VendorRequest {
  return { ...request, headers: [...request.headers, ...more] }
}

/** Logs have tenths of a millisecond. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

function presentable(name: string | undefined): string | undefined {
  return name === undefined ? undefined : maskedName(name)
}

function misplacedKey(): RequestError {
  const message = 'the API key is in the path or in the model, where logs would show it'
  return new RequestError({ status: 400, code: 'MISPLACED_KEY', message })
}

function cannotReplaceModel(): RequestError {
  const message = 'this route replaces the model, which is only possible in a JSON body'
  return new RequestError({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', message })
}

function slowBody(): RequestError {
  const message = 'the body arrived too slowly (server.bodyMs, server.bodyBytesPerSecond)'
  return new RequestError({ status: 408, code: 'SLOW_BODY', message, closes: true })
}

function noModel(model: string | undefined): RequestError {
  const what = model === undefined ? 'a request without a model' : `the model ${maskedName(model)}`
  return new RequestError({ status: 404, code: 'NO_ROUTE', message: `no route takes ${what}` })
}

function unauthorized(): RequestError {
  const message = 'the API key is missing or unknown'
  return new RequestError({ status: 401, code: 'UNKNOWN_KEY', message })
}
