/**
 * One request from its first byte to its last. The steps are in files of their own: `validate.ts`, `route-request.ts`,
 * `send-to-targets.ts`, `response/client-response.ts` and `record.ts`. This one calls them in order, answers failures in
 * the format of the client's protocol, and ends the request if the client disconnects or the gateway shuts down.
 */
import type { Clock } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import type { RouteConfig } from '../config/config.js'
import type { FallbackAnswers } from '../degrade/fallback-answers.js'
import { reasonOfError, reasonOfStatus, retryAfterMsOf } from '../degrade/fallback-reason.js'
import { RequestFallbacks } from '../degrade/request-fallbacks.js'
import type { Protocol, RequestAddress } from '../protocols/protocol.js'
import { ResponseWriter } from '../response/client-response.js'
import { answerPreflight, corsHeaders, isPreflight } from '../response/cors.js'
import { type Fault, faultOf, RequestError, SHUTTING_DOWN } from '../response/errors.js'
import { requestIdFor, shownPath } from '../response/privacy.js'
import type { ConfigVersion } from '../routing/config-version.js'
import type { Target } from '../routing/target.js'
import type { SentAnswer } from '../vendor/sent-answer.js'
import type { AsyncRequests, JobRequestListener } from './async-requests.js'
import { HungUpError } from './body/body.js'
import { SlowBody } from './body/slow-body.js'
import type { Caller } from './callers.js'
import { type ClientRequest, type ClientResponse, disconnect, isSent } from './client-http.js'
import { ClientSignal } from './deadline.js'
import { recordOf } from './record.js'
import { type RoutingListener, routeRequest } from './route-request.js'
import { canBeSentTo, type RoutedRequest } from './routed-request.js'
import { TargetSender } from './send-to-targets.js'
import type { RequestTrace } from './trace.js'
import { validateRequest } from './validation/validate.js'

export class Exchange implements RoutingListener, JobRequestListener {
  /** The configuration in force when the request arrived. */
  readonly version: ConfigVersion
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #writer: ResponseWriter
  readonly #sender: TargetSender
  readonly #address: RequestAddress
  readonly #id: string
  readonly #clock: Clock
  readonly #arrivedMs: number
  /** Aborted when the client disconnects, or when its body fails. */
  readonly #leaving = new ClientSignal()
  readonly #trace: RequestTrace | undefined
  #caller: Caller | undefined
  #route: RouteConfig | undefined
  #routed: RoutedRequest | undefined
  #closed = false
  /** The connection ends with this answer, because no request can follow. */
  #isLast = false
  #slowBody: SlowBody | undefined
  #receivedBytes = 0
  /** Bytes of its body that are held in memory. */
  #heldBytes = 0
  /** The client waits for a 100 before it sends its body, and has not received it. */
  #awaitsContinue: boolean

  constructor(
    version: ConfigVersion,
    request: ClientRequest,
    response: ClientResponse,
    address: RequestAddress,
    expectsContinue: boolean,
  ) {
    const { clock } = version.hooks
    this.#awaitsContinue = expectsContinue
    this.version = version
    this.#request = request
    this.#response = response
    this.#clock = clock
    this.#arrivedMs = clock.now()
    this.#address = address
    this.#id = requestIdFor(request.headers)
    this.#trace = version.hooks.tracer?.begin(request, this.#shownPath)
    this.#writer = new ResponseWriter(response, this.#id, this.#arrivedMs, version.hooks)
    this.#sender = new TargetSender({
      version,
      id: this.#id,
      request,
      trace: this.#trace,
      clock,
      arrivedMs: this.#arrivedMs,
      signal: this.#leaving,
    })
  }

  serve(): void {
    this.#serve().catch((error) => this.#fail(error))
  }

  async #serve(): Promise<void> {
    const { config, hooks } = this.version
    const { asyncRequests } = hooks
    const request = this.#request
    const fault = validateRequest(request, config.server)
    if (fault !== undefined) throw new RequestError(fault)
    if (config.cors !== undefined) {
      const { headers } = request
      this.#writer.addHeaders(corsHeaders(config.cors, headers))
      if (isPreflight(request.method, headers)) {
        return this.#writer.sendOwnAnswer(answerPreflight(config.cors, headers))
      }
    }
    if (asyncRequests?.owns(this.#path)) return this.#answerAboutJob(asyncRequests)
    const routed = await routeRequest(request, this.#address, this.version, this)
    this.#routed = routed
    const { route } = routed
    if (asyncRequests !== undefined) {
      const target = this.version.targetsOf(route).find((each) => canBeSentTo(routed, each))
      const later = asyncRequests.defer(request, routed, target)
      if (later !== undefined) return this.#writer.sendOwnAnswer(await later)
    }
    if (routed.facts.streamed && route.keepAliveMs !== undefined) {
      this.#writer.keepAlive(route.keepAliveMs)
    }
    const fallbacks = this.version.fallbackAnswersOf(route)
    if (fallbacks !== undefined) return this.#sendOrFallBack(routed, fallbacks)
    const answer = await this.#sender.send(routed)
    this.#leaving.cause = undefined
    this.#writer.pass(answer, this.#sender.passing(answer))
  }

  /** For routes with answers that need no vendor. */
  async #sendOrFallBack(routed: RoutedRequest, answers: FallbackAnswers): Promise<void> {
    const [target] = this.version.targetsOf(routed.route)
    const sender = this.#sender
    const fallbacks = new RequestFallbacks(
      answers,
      this.#request,
      routed,
      target as Target,
      this.#clock,
    )
    let answer: SentAnswer
    try {
      answer = await sender.send(routed)
    } catch (error) {
      if (this.#fallBack(fallbacks, reasonOfError(error, sender.attempts), error)) return
      throw error
    }
    this.#leaving.cause = undefined
    if (this.#fallBack(fallbacks, reasonOfStatus(answer.status), answer)) return
    const { refusal, attempts } = sender
    if (
      refusal !== undefined &&
      this.#fallBack(fallbacks, reasonOfError(refusal, attempts), refusal)
    )
      return
    const copy = sender.isFirstChoice ? fallbacks.copyOf(answer) : undefined
    this.#writer.pass(answer, { ...sender.passing(answer), copy })
  }

  /** `failure`: the error or the answer of the vendor. False: no fallback has an answer. */
  #fallBack(
    fallbacks: RequestFallbacks,
    reason: DegradedReason | undefined,
    failure: unknown,
  ): boolean {
    if (reason === undefined || this.#closed || this.#leaving.aborted) return false
    const answer = fallbacks.answerFor(reason)
    if (answer === undefined) return false
    const { attempts, lastVendor, waitedMs } = this.#sender
    this.#sender.cancel()
    this.#sender.end = undefined
    this.#sender.noteDegraded(answer.step, reason)
    const retryAfterMs = retryAfterMsOf(failure, this.#clock.wallMs())
    this.#writer.fallBack(answer, { reason, attempts, lastVendor, waitedMs, retryAfterMs })
    return true
  }

  async #answerAboutJob(asyncRequests: AsyncRequests): Promise<void> {
    const answer = await asyncRequests.answer(this.#request, this.#response, this.#path, this)
    if (answer !== undefined) this.#writer.sendOwnAnswer(answer)
  }

  // Called while the request is routed, or by the stream of a job.

  onProtocol(protocol: Protocol): void {
    this.#writer.useProtocol(protocol, this.#path)
  }

  onCaller(caller: Caller): void {
    this.#caller = caller
  }

  onRoute(route: RouteConfig): void {
    this.#route = route
  }

  onReading(): void {
    if (this.#awaitsContinue) this.#response.writeContinue()
    this.#awaitsContinue = false
  }

  onReceived(bytes: number): void {
    this.#receivedBytes += bytes
  }

  onHeld(bytes: number): void {
    // Bytes that a decoder still holds would be counted after `close` has returned the memory.
    if (this.#closed) throw new HungUpError('the client disconnected')
    // The request was refused while it was read, because it was too slow or the gateway shuts down.
    if (this.#writer.error !== undefined) throw this.#writer.error
    const { hooks, config } = this.version
    hooks.bodyMemory.take(bytes, config.body.maxTotalBytes)
    this.#heldBytes += bytes
  }

  onBodyFault(error: unknown): void {
    this.#leaving.abort(error)
  }

  onShutdown(): void {
    this.#writer.error ??= new RequestError(SHUTTING_DOWN)
  }

  // Called by the data server.

  /** The connection was closed, or the answer was sent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    // Not if the gateway itself closed the connection.
    if (!isSent(this.#response) && this.#writer.error === undefined) {
      this.#leaving.abort(new HungUpError('the client disconnected'))
    }
    this.#writer.close()
    this.version.hooks.bodyMemory.giveBack(this.#heldBytes)
    this.#heldBytes = 0
    const record = recordOf({
      id: this.#id,
      request: this.#request,
      response: this.#response,
      shownPath: this.#shownPath,
      caller: this.#caller,
      route: this.#route,
      routed: this.#routed,
      sender: this.#sender,
      hungUp: this.#leaving.reason instanceof HungUpError,
      error: this.#writer.error,
      firstByteMs: this.#writer.firstByteMs,
      durationMs: this.#clock.now() - this.#arrivedMs,
    })
    this.#trace?.end(record)
    this.version.hooks.onRecord(record)
  }

  /** Called about once a second. Ends the request if its body arrives too slowly. */
  checkUpload(nowMs: number): void {
    this.#slowBody ??= new SlowBody(this.#request)
    const body = this.#routed?.parsed.body
    const waiting = body === undefined || (body.kind === 'streamed' && body.progress.waiting)
    const { server } = this.version.config
    if (this.#slowBody.isOver(nowMs, this.#receivedBytes, waiting, server)) this.#cutOff(slowBody())
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

  /** The rest of the body will not arrive. */
  #cutOff(error: RequestError): void {
    if (this.#writer.error !== undefined) return this.disconnect()
    this.#leaving.abort(error)
    // While the body is being read, nothing else listens to the signal.
    if (this.#routed === undefined) this.#fail(error)
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
    this.#sender.cancel()
    // A failure that the client caused takes precedence over its effect on the vendor's side.
    const reason = this.#leaving.aborted ? this.#leaving.reason : error
    if (this.#closed || reason instanceof HungUpError) return this.#writer.abandon()
    const { attempts, vendor, lastVendor } = this.#sender
    const fault = faultOf(reason, vendor, attempts > 0)
    if (fault.code === 'INTERNAL') this.version.hooks.onFailure(error)
    // Without a 100 the client may send its body or not, so the next request on the connection cannot be found.
    if (this.#awaitsContinue) this.#response.shouldKeepAlive = false
    this.#writer.refuse(reason, fault, attempts, lastVendor)
  }

  get #path(): string {
    return this.#address.path
  }

  get #shownPath(): string {
    return shownPath(this.#path, this.#request.headers)
  }
}

function slowBody(): RequestError {
  const message =
    'the body arrived too slowly (server.bodyMs, server.bodyBytesPerSecond); send it faster or change these options'
  return new RequestError({ status: 408, code: 'SLOW_BODY', message, closes: true })
}
