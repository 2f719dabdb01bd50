/**
 * The second half of a request: sends it to the targets of its route, one after the other, until one answers. Each
 * target's guard decides whether and when the request is sent. Nothing reaches the client before a target has answered.
 */
import { type CallContext, type Clock, type RunOptions, SpillwayError } from 'spillway'
import { clientNetwork, judgeStatus } from 'spillway/http'
import {
  type BodyEnd,
  type ErrorKind,
  failureOf,
  type KeyId,
  kindOfStatus,
  noteFallback,
  noteQuarantined,
  REPLACES,
  type ReplacedCall,
  type TokenUsage,
  type UserStanding,
} from 'spillway/internal'
import type { RouteConfig } from '../config/config.js'
import type { Passing } from '../response/client-response.js'
import { RequestError } from '../response/errors.js'
import type { ConfigVersion } from '../routing/config-version.js'
import { nextTarget, orderByPressure, orderTargets, type Target } from '../routing/target.js'
import { HeldError } from '../vendor/held-error.js'
import type { Vendor } from '../vendor/vendor.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import { neverConnected, VendorError } from '../vendor/vendor-error.js'
import { vendorRequest } from '../vendor/vendor-request.js'
import type { ResponseListener, SentAnswer, VendorResponse } from '../vendor/vendor-response.js'
import type { ClientRequest } from './client-http.js'
import {
  type ClientSignal,
  callerAttempt,
  deadlineMs,
  HOP_NEEDS_MS,
  hopHeaders,
} from './deadline.js'
import type { Degraded, Tries } from './record.js'
import { canBeRepeated, canBeSentTo, type RoutedRequest } from './routed-request.js'
import { type RequestTrace, withTrace } from './trace.js'

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

/** What is known of a request before it is routed. */
export interface SenderOptions {
  readonly version: ConfigVersion
  /** Id of the request, by which its decisions are found. */
  readonly id: string
  readonly request: ClientRequest
  readonly trace: RequestTrace | undefined
  readonly clock: Pick<Clock, 'now' | 'schedule'>
  readonly arrivedMs: number
  /** Aborted when the client disconnects. */
  readonly signal: ClientSignal
}

/** The last error that a vendor answered, while another attempt is made, and where it came from. */
interface HeldAnswer {
  readonly error: HeldError
  readonly target: Target
  readonly lane: string | undefined
  readonly step: number
}

export class TargetSender implements ResponseListener {
  readonly #options: SenderOptions
  /** The targets tried so far, in order. The last one is being tried, or has answered. */
  readonly tries: Tries[] = []
  #target: Target | undefined
  #routed: RoutedRequest | undefined
  #lane: string | undefined
  /** The gateway requested the usage of the stream; the client did not. */
  #asksUsage = false
  #standing: UserStanding | undefined
  #answer: VendorResponse | undefined
  #held: HeldAnswer | undefined
  /** No attempt follows. */
  #decided = false
  /** Why no attempt after a vendor's error succeeded. The client gets the vendor's error. */
  refusal: unknown
  /** How the last target failed, which another one or a fallback replaces. */
  #replaced: ReplacedCall | undefined
  /** Time until the request was sent for the first time. */
  waitedMs = 0
  /** Stages in shadow that would have refused it. */
  shadow: string[] | undefined
  /** How the body of the answer ended. */
  end: BodyEnd | undefined
  usage: TokenUsage | undefined
  /** Number of targets with `when` that were tried. */
  #triedUnderPressure = 0
  /** Set if something else than the usual target answered. */
  degraded: Degraded | undefined

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** The vendor that answered, or the last one tried. */
  get vendor(): string | undefined {
    return this.#target?.vendor.name
  }

  /** The last vendor that received the request, if any. */
  get asked(): string | undefined {
    return this.tries.findLast((each) => each.attempts > 0)?.vendor
  }

  get attempts(): number {
    let attempts = 0
    for (const each of this.tries) attempts += each.attempts
    return attempts
  }

  /** Drops the answer, if there is one. */
  cancel(): void {
    this.#decided = true
    this.#answer?.cancel()
    this.#held?.error.drop()
  }

  /** Resolves with an answer whose first chunk has arrived, or with a vendor's error that has arrived entirely. */
  async send(routed: RoutedRequest): Promise<SentAnswer> {
    try {
      const answer = await this.#sendToTargets(routed)
      this.#decided = true
      this.#held?.error.drop()
      return answer
    } catch (error) {
      this.#decided = true
      return this.#heldErrorOr(error)
    }
  }

  async #sendToTargets(routed: RoutedRequest): Promise<VendorResponse> {
    this.#routed = routed
    const { route } = routed
    const all = this.#options.version.targetsOf(route)
    const ordered = route.choices === 1 ? all : orderTargets(all, route.choices, routed.facts.model)
    const usable = ordered.filter((each) => canBeSentTo(routed, each))
    const targets = usable.length === 1 ? usable : orderByPressure(usable)
    for (let target = targets[0] as Target; ; ) {
      const next = (kind: ErrorKind) => nextTarget(targets, target, kind)
      const tries = { vendor: target.vendor.name, attempts: 0 }
      this.#target = target
      this.tries.push(tries)
      if (target.config.when !== undefined) this.#triedUnderPressure++
      try {
        const answer = await this.#sendWithKeys(routed, target, tries)
        this.#answer = answer
        const other = answer.status < 400 ? undefined : this.#otherFor(routed, answer, next)
        if (other !== undefined) {
          answer.cancel()
          this.#answer = undefined
          this.#replaced = this.#replacedBy(answer.status)
          target = other
          continue
        }
        // Until the first chunk has arrived, the next target can still be tried.
        const begun = answer.begin()
        if (begun !== undefined) await begun
        if (routed.facts.streamed) answer.demandEvents()
        if (answer.failure !== undefined) throw answer.failure.error
        if (answer.ok && target.config.when !== undefined) {
          this.noteDegraded(target.config.model === undefined ? 'target' : 'model', 'pressure')
        }
        return answer
      } catch (error) {
        this.#replaced = this.#replacedBy(undefined, error)
        const isWorth = this.#isWorthAnother(routed, error, tries)
        const other = isWorth ? next(kindOfThrown(error)) : undefined
        if (other === undefined) throw error
        target = other
      }
    }
  }

  /** Whether the target that the route prefers has answered, so that its answer may be kept. */
  get isFirstChoice(): boolean {
    return this.#step === 0 && this.#target?.config.when === undefined
  }

  /** Index of the target that answered or was tried last, without those for times of pressure. */
  get #step(): number {
    if (this.refusal !== undefined && this.#held !== undefined) return this.#held.step
    return Math.max(0, this.tries.length - this.#triedUnderPressure - 1)
  }

  /** Another answer is sent in place of the usual one: for the record, metrics and the dashboard. */
  noteDegraded(step: Degraded['step'], reason: Degraded['reason']): void {
    this.degraded = { step, reason }
    const { user, tier, priority } = (this.#routed as RoutedRequest).caller
    const { guard } = (this.#target as Target).vendor
    const { arrivedMs, id: requestId } = this.#options
    const lane = this.#lane === undefined ? {} : { lane: this.#lane }
    const call = { user, tier, priority, requestId, ...lane }
    // An error was noted when it was thrown.
    const isAnswered = reason !== 'pressure' && this.#answer !== undefined
    const replaces = isAnswered ? this.#replacedBy(this.#answer?.status) : this.#replaced
    noteFallback(guard, { step, reason, call, arrivedMs, attempts: this.attempts, replaces })
  }

  /** The current target's call, which has failed with this status or error. */
  #replacedBy(status: number | undefined, error?: unknown): ReplacedCall {
    const { user, tier } = (this.#routed as RoutedRequest).caller
    const isRejected = status !== undefined && status < 500
    const code = error instanceof SpillwayError ? error.code : isRejected ? 'REJECTED' : 'FAILED'
    return { guard: this.vendor ?? '', lane: this.#lane, code, status, user, tier }
  }

  /** How the answer is passed on to the client. */
  passing(answer: SentAnswer): Passing {
    const { vendor, addresses, config } = this.#target as Target
    return {
      decision: {
        vendor: vendor.name,
        lane: this.#lane,
        attempts: this.attempts,
        waitedMs: this.waitedMs,
        step: this.#step,
        pressed: config.when && { model: config.model },
        standing: this.#standing,
        shadow: this.shadow,
        refused: this.refusal instanceof SpillwayError ? this.refusal.code : undefined,
      },
      drop: this.#asksUsage ? vendor.protocol.isUsageEvent : undefined,
      // Retries of the client would multiply with those of the gateway.
      final: this.#isFinal(answer, this.#routed as RoutedRequest, vendor),
      addresses,
    }
  }

  onEnded(how: BodyEnd, usage: TokenUsage | undefined, status: number): void {
    this.end = how
    this.usage = usage
    const whole = how === 'complete' || usage?.outputTokens !== undefined
    if (!whole || status >= 300 || this.#target === undefined) return
    const { vendor, config } = this.#target
    const { model, prompt, answers = 1 } = this.#routed?.facts ?? {}
    const { arrivedMs: sentMs } = this.#options
    vendor.answered(config.model ?? model, config, { prompt, answers, sentMs }, usage)
  }

  holdsError(answer: VendorResponse): boolean {
    const target = this.#target
    const { signal, clock } = this.#options
    if (this.#decided || target === undefined || signal.aborted) return false
    this.#held?.error.drop()
    const error = new HeldError(answer, clock)
    this.#held = { error, target, lane: this.#lane, step: this.#step }
    return true
  }

  /** The gateway's own refusal never replaces the error of a vendor. */
  async #heldErrorOr(error: unknown): Promise<SentAnswer> {
    const held = this.#held
    const isOurs = error instanceof SpillwayError || error instanceof VendorError
    if (held === undefined || !isOurs || this.#options.signal.aborted) throw error
    if (!(await held.error.whole) || this.#options.signal.aborted) throw error
    this.refusal = error
    this.#target = held.target
    this.#lane = held.lane
    this.end = 'complete'
    return held.error
  }

  /** The target to ask after this error, if any. */
  #otherFor(
    routed: RoutedRequest,
    answer: VendorResponse,
    next: (kind: ErrorKind) => Target | undefined,
  ): Target | undefined {
    const { status } = answer
    const { kind } = failureOf(answer) ?? { kind: kindOfStatus(status) }
    // Ours to solve, so every fallback may take over.
    if (answer.rejectsKey && this.#mayAskAnother(routed, true)) return next(kind) ?? next('server')
    const { retryable } = judgeStatus(status)
    if (kind === 'server' && !retryable) return undefined
    // The vendor refused the request before it did anything.
    const untouched = status < 500 && status !== 408
    if (!this.#mayAskAnother(routed, untouched)) return undefined
    return next(kind === 'bad-request' && retryable ? 'server' : kind)
  }

  /** With the first key of the target that is not quarantined, and with the next one if the vendor rejects it. */
  async #sendWithKeys(
    routed: RoutedRequest,
    target: Target,
    tries: Tries,
  ): Promise<VendorResponse> {
    const { vendor, config } = target
    const { keys } = vendor
    if (keys === undefined) return this.#run(routed, target, tries)
    const rejected = new Set<KeyId>()
    for (let key = keys.choose(config); ; ) {
      if (key instanceof SpillwayError) this.#noteQuarantined(routed, target, key)
      if (!isKey(key)) throw key
      const keyed = withKey(target, key)
      this.#target = keyed
      rejected.add(key)
      let refusal: unknown
      const answer = await this.#run(routed, keyed, tries, key).catch((error) => {
        if (!isQuarantined(error)) throw error
        refusal = error
        return undefined
      })
      const next = keys.choose(config, rejected)
      if (answer === undefined && !isKey(next)) throw refusal
      const isOver = answer !== undefined && !answer.rejectsKey
      if (answer !== undefined && (isOver || !isKey(next) || !this.#mayAskAnother(routed, true))) {
        return answer
      }
      answer?.cancel()
      key = next
    }
  }

  /** All keys of the target are quarantined. Its guard counts the refusal, but the request does not reach it. */
  #noteQuarantined({ facts, caller }: RoutedRequest, target: Target, error: SpillwayError): void {
    const { vendor, config } = target
    const { user, tier, priority } = caller
    const lane = vendor.laneOf(config.model ?? facts.model, config)
    this.#lane = lane
    const { id: requestId } = this.#options
    const call = { requestId, lane, user, tier, priority, [REPLACES]: this.#replaced }
    noteQuarantined(vendor.guard, error, call)
  }

  #isWorthAnother(routed: RoutedRequest, error: unknown, { attempts }: Tries): boolean {
    if (error instanceof RequestError) return false
    if (error instanceof SpillwayError && !WORTH_ANOTHER.has(error.code)) return false
    return this.#mayAskAnother(routed, attempts === 0 || neverConnected(error))
  }

  /** `untouched`: the last target did not process the request. */
  #mayAskAnother(routed: RoutedRequest, untouched: boolean): boolean {
    if (this.#options.signal.aborted) return false
    const { body } = routed.parsed
    if (body.kind === 'streamed' && body.progress.begun) return false
    return untouched || canBeRepeated(routed)
  }

  #run(routed: RoutedRequest, target: Target, tries: Tries, key?: KeyId): Promise<VendorResponse> {
    const { id: requestId, request: incoming, signal, trace, clock, arrivedMs } = this.#options
    const { vendor, config } = target
    const { facts, caller, generates } = routed
    const { body } = routed.parsed
    const model = config.model ?? facts.model
    const lane = vendor.laneOf(model, config)
    this.#lane = lane
    this.#asksUsage = hidesUsage(routed, target)
    const request = vendorRequest(incoming, routed, target, this.#asksUsage)
    const cost = generates ? vendor.costOf(facts, model, lane) : undefined
    if (body.kind === 'streamed' && !body.progress.complete) signal.cause = 'upload'
    // User limits were charged at the first target that received the request.
    const charged = this.attempts > 0
    const theirAttempt = callerAttempt(incoming)
    // One object literal: adding the functions later would keep the call from being collected early.
    const options: RunOptions & { [REPLACES]: ReplacedCall | undefined } = {
      requestId,
      [REPLACES]: this.#replaced,
      priority: caller.priority,
      idempotent: canBeRepeated(routed),
      callerAttempt: theirAttempt,
      signal,
      lane,
      cost,
      timeoutMs: this.#timeLeftMs(routed.route),
      needsMs: vendor.hops ? HOP_NEEDS_MS : undefined,
      user: charged ? undefined : caller.user,
      tier: charged ? undefined : caller.tier,
      ip: charged ? undefined : clientNetwork(incoming.socket.remoteAddress ?? ''),
      endpoint: charged ? undefined : routed.path,
      onUserLimit: (standing) => {
        this.#standing = standing
      },
      costOfUsage: cost && ((usage) => vendor.countedFor(facts, model, usage)),
      traceParent: trace?.context,
      onShadow: vendor.shadows ? ({ stage }) => this.#noteShadow(stage) : undefined,
    }
    return vendor.guard.run((context: CallContext) => {
      const send = () => {
        if (tries.attempts++ === 0) this.waitedMs = clock.now() - arrivedMs
        const traced = trace === undefined ? request : this.#inTrace(request, context)
        const sent = vendor.hops ? withHeaders(traced, hopHeaders(context, theirAttempt)) : traced
        return vendor.send(sent, context, this, cost)
      }
      const { keys } = vendor
      return keys === undefined || key === undefined ? send() : keys.send(key, send)
    }, options)
  }

  /** The shorter of the route's `timeoutMs` and the client's deadline. Undefined if there is neither. */
  #timeLeftMs({ timeoutMs = Number.POSITIVE_INFINITY }: RouteConfig): number | undefined {
    const { request, signal, clock, arrivedMs } = this.#options
    const theirs = deadlineMs(request.headers['spillway-deadline-ms'])
    const isShorter = theirs >= 0 && theirs < timeoutMs
    if (!isShorter && timeoutMs === Number.POSITIVE_INFINITY) return undefined
    if (isShorter) signal.cause = 'deadline'
    return Math.max(0, (isShorter ? theirs : timeoutMs) - (clock.now() - arrivedMs))
  }

  /** The gateway or a service behind it has retried, or has decided against it. */
  #isFinal(answer: SentAnswer, routed: RoutedRequest, vendor: Vendor): boolean {
    if (!judgeStatus(answer.status).retryable) return false
    if (vendor.hops && answer.header('spillway-retried') !== undefined) return true
    return vendor.retries && canBeRepeated(routed)
  }

  #inTrace(request: VendorRequest, { traceHeaders }: CallContext): VendorRequest {
    const isPassedOn = this.#options.version.hooks.tracer?.toVendors === true
    return {
      ...request,
      headers: withTrace(request.headers, isPassedOn ? traceHeaders : undefined),
    }
  }

  #noteShadow(stage: string): void {
    this.shadow ??= []
    if (!this.shadow.includes(stage)) this.shadow.push(stage)
  }
}

/** Refusals and failures that are no answers of the vendor. */
function kindOfThrown(error: unknown): ErrorKind {
  const isLimited = error instanceof SpillwayError && error.code === 'VENDOR_LIMITED'
  return isLimited ? 'rate-limited' : 'server'
}

/** The same target, with another key of its vendor. */
function withKey(target: Target, { name }: KeyId): Target {
  const { vendor, config } = target
  if (vendor.usesKey(config, name)) return target
  const keyed = { ...config, key: name }
  return { ...target, config: keyed, ownHeaders: vendor.ownHeaders(keyed) }
}

function isKey(choice: KeyId | SpillwayError | undefined): choice is KeyId {
  return choice !== undefined && !(choice instanceof SpillwayError)
}

/** Refused because its key was quarantined while the request waited. */
function isQuarantined(error: unknown): boolean {
  return error instanceof SpillwayError && error.details.key !== undefined
}

function hidesUsage({ parsed: { json }, facts, path }: RoutedRequest, { vendor }: Target): boolean {
  if (json === undefined || !facts.streamed || !vendor.countsTokens) return false
  return vendor.protocol.hidesUsage(path, json.fields)
}

function withHeaders(request: VendorRequest, more: readonly string[]): VendorRequest {
  return { ...request, headers: [...request.headers, ...more] }
}
