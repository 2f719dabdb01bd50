/**
 * The second half of a request: sends it to the targets of its route, one after the other, until one answers. Each
 * target's guard decides whether and when the request is sent. Nothing reaches the client before a target has answered.
 */
import { SpillwayError } from 'spillway'
import { judgeStatus } from 'spillway/http'
import {
  type BodyEnd,
  type KeyId,
  noteFallback,
  noteQuarantined,
  REPLACES,
  type ReplacedCall,
  type TokenUsage,
  type UserStanding,
} from 'spillway/internal'
import type { Passing } from '../response/client-response.js'
import { orderByPressure, orderTargets, type Target } from '../routing/target.js'
import { HeldError } from '../vendor/held-error.js'
import type { SentAnswer } from '../vendor/sent-answer.js'
import type { Vendor } from '../vendor/vendor.js'
import { VendorError } from '../vendor/vendor-error.js'
import { isKey } from '../vendor/vendor-keys.js'
import type { VendorResponse } from '../vendor/vendor-response.js'
import { type GuardListener, type SenderOptions, sendThroughGuard } from './guarded-request.js'
import { canBeSentAgain, targetAfterAnswer, targetAfterError } from './next-target.js'
import type { Degraded, VendorAttempts } from './record.js'
import { canBeRepeated, canBeSentTo, type RoutedRequest } from './routed-request.js'

/** The last error that a vendor answered, while another attempt is made, and where it came from. */
interface HeldAnswer {
  readonly error: HeldError
  readonly target: Target
  readonly lane: string | undefined
  readonly step: number
}

export class TargetSender implements GuardListener {
  readonly #options: SenderOptions
  /** The targets tried so far, in order. The last one is being tried, or has answered. */
  readonly vendorAttempts: VendorAttempts[] = []
  #target: Target | undefined
  #routed: RoutedRequest | undefined
  #lane: string | undefined
  /** The gateway requested the usage of the stream; the client did not. */
  #requestsUsage = false
  #standing: UserStanding | undefined
  #answer: VendorResponse | undefined
  #held: HeldAnswer | undefined
  /** No attempt follows. */
  #decided = false
  /** Why no attempt after a vendor's error succeeded. The client gets the vendor's error. */
  refusal: unknown
  /** The failed call at the last target, which another target or a fallback replaces. */
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

  /** The model in place of the client's, if the target replaces it. */
  get sentModel(): string | undefined {
    return this.#target?.config.model
  }

  /** The last vendor that received the request, if any. */
  get lastVendor(): string | undefined {
    return this.vendorAttempts.findLast((each) => each.attempts > 0)?.vendor
  }

  get attempts(): number {
    let attempts = 0
    for (const each of this.vendorAttempts) attempts += each.attempts
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
    this.#routed = routed
    const targets = this.#targetsFor(routed)
    for (let target = targets[0] as Target; ; ) {
      const vendorAttempts = { vendor: target.vendor.name, attempts: 0 }
      this.#target = target
      this.vendorAttempts.push(vendorAttempts)
      if (target.config.when !== undefined) this.#triedUnderPressure++
      let other: Target | undefined
      try {
        const answer = await this.#sendWithKeys(routed, target)
        this.#answer = answer
        if (answer.status >= 400 && !this.#options.signal.aborted) {
          other = targetAfterAnswer({ routed, targets, target }, answer)
        }
        if (other === undefined) {
          // Until the first chunk has arrived, the next target can still be tried.
          const begun = answer.begin()
          if (begun !== undefined) await begun
          if (routed.facts.streamed) answer.demandEvents()
          if (answer.failure !== undefined) throw answer.failure.error
          return this.#accept(answer, target)
        }
        answer.cancel()
        this.#answer = undefined
        this.#replaced = this.#replacedBy(answer.status)
      } catch (error) {
        this.#replaced = this.#replacedBy(undefined, error)
        if (!this.#options.signal.aborted) {
          other = targetAfterError({ routed, targets, target }, error, vendorAttempts.attempts)
        }
        if (other === undefined) {
          this.#decided = true
          return this.#heldErrorOr(error)
        }
      }
      target = other
    }
  }

  /** In the order in which they are tried. */
  #targetsFor(routed: RoutedRequest): readonly Target[] {
    const { route } = routed
    const all = this.#options.version.targetsOf(route)
    const ordered = route.choices === 1 ? all : orderTargets(all, route.choices, routed.facts.model)
    const usable = ordered.filter((each) => canBeSentTo(routed, each))
    return usable.length === 1 ? usable : orderByPressure(usable)
  }

  #accept(answer: VendorResponse, { config }: Target): VendorResponse {
    this.#decided = true
    this.#held?.error.drop()
    if (answer.ok && config.when !== undefined) {
      this.noteDegraded(config.model === undefined ? 'target' : 'model', 'pressure')
    }
    return answer
  }

  /** Whether the target that the route prefers has answered, so that its answer may be kept. */
  get isFirstChoice(): boolean {
    return this.#step === 0 && this.#target?.config.when === undefined
  }

  /** Index of the target that answered or was tried last, without those for times of pressure. */
  get #step(): number {
    if (this.refusal !== undefined && this.#held !== undefined) return this.#held.step
    return Math.max(0, this.vendorAttempts.length - this.#triedUnderPressure - 1)
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
      drop: this.#requestsUsage ? vendor.protocol.isUsageEvent : undefined,
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

  /** With the first key of the target that is not quarantined, and with the next one if the vendor rejects it. */
  #sendWithKeys(routed: RoutedRequest, target: Target): Promise<VendorResponse> {
    const { vendor, config } = target
    const { keys } = vendor
    if (keys === undefined) return this.#sendWith(undefined, routed, target)
    const key = keys.choose(config)
    if (key instanceof SpillwayError) this.#noteQuarantined(routed, target, key)
    if (!isKey(key)) throw key
    const send = (each: KeyId) => this.#sendWith(each, routed, target)
    if (!keys.hasChoice(config)) return send(key)
    const mayTryNext = () => !this.#options.signal.aborted && canBeSentAgain(routed, true)
    return keys.sendInTurn(config, key, send, mayTryNext)
  }

  #sendWith(
    key: KeyId | undefined,
    routed: RoutedRequest,
    unkeyed: Target,
  ): Promise<VendorResponse> {
    const target = key === undefined ? unkeyed : withKey(unkeyed, key)
    const { vendor, config } = target
    const lane = vendor.laneOf(config.model ?? routed.facts.model, config)
    const requestsUsage = hidesUsage(routed, target)
    this.#target = target
    this.#lane = lane
    this.#requestsUsage = requestsUsage
    // User limits were charged at the first target that received the request.
    const isCharged = this.attempts > 0
    const replaced = this.#replaced
    const sent = { routed, target, key, lane, requestsUsage, isCharged, replaced }
    return sendThroughGuard(this.#options, sent, this)
  }

  // `GuardListener`: called while a request is sent, and when its answer has ended.

  onAttempt(): void {
    const { clock, arrivedMs } = this.#options
    const vendorAttempts = this.vendorAttempts.at(-1) as VendorAttempts
    if (vendorAttempts.attempts++ === 0) this.waitedMs = clock.now() - arrivedMs
  }

  onStanding(standing: UserStanding): void {
    this.#standing = standing
  }

  onShadow(stage: string): void {
    this.shadow ??= []
    if (!this.shadow.includes(stage)) this.shadow.push(stage)
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

  /** The gateway or a service behind it has retried, or has decided against it. */
  #isFinal(answer: SentAnswer, routed: RoutedRequest, vendor: Vendor): boolean {
    if (!judgeStatus(answer.status).retryable) return false
    if (vendor.hops && answer.header('spillway-retried') !== undefined) return true
    return vendor.retries && canBeRepeated(routed)
  }
}

/** The same target, with another key of its vendor. */
function withKey(target: Target, { name }: KeyId): Target {
  const { vendor, config } = target
  if (vendor.usesKey(config, name)) return target
  const keyed = { ...config, key: name }
  return { ...target, config: keyed, ownHeaders: vendor.ownHeaders(keyed) }
}

function hidesUsage({ parsed: { json }, facts, path }: RoutedRequest, { vendor }: Target): boolean {
  if (json === undefined || !facts.streamed || !vendor.countsTokens) return false
  return vendor.protocol.hidesUsage(path, json.fields)
}
