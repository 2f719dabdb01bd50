/** One vendor: its guard, its connections, its lanes, and how a request looks on the way to it. */
import { isDeepStrictEqual } from 'node:util'
import {
  type CallContext,
  type CallEnd,
  type Clock,
  type Guard,
  type GuardOptions,
  type OutcomeOptions,
  type Spillway,
  SpillwayError,
} from 'spillway'
import {
  type Cost,
  FIXED_ESTIMATES,
  nameLanes,
  type Prompt,
  pressureOf,
  type TokenUsage,
  withoutNestedCalls,
} from 'spillway/internal'
import type { TargetConfig, VendorConfig } from '../config/config.js'
import { hasCredentials } from '../config/open-access.js'
import { PROTOCOLS } from '../protocols/index.js'
import type { Protocol, RequestFacts } from '../protocols/protocol.js'
import { classifyClientFailure } from '../request/deadline.js'
import { RefCounted } from '../routing/ref-counted.js'
import { keyNameOf, ModelLanes, ModelLimits } from './model-lanes.js'
import { VendorClient, type VendorHandler, type VendorRequest } from './vendor-client.js'
import { VendorKeys } from './vendor-keys.js'
import { type ResponseListener, VendorResponse } from './vendor-response.js'

/** The guard's default for `maxLanes`. */
const DEFAULT_MAX_LANES = 1_000

/** A request that was answered. */
interface AnsweredRequest {
  /** Undefined if the call's lane is no longer known. */
  readonly prompt: Prompt | undefined
  /** Answers that were generated for it. */
  readonly answers: number
  /** Not later than the time at which it was sent. */
  readonly sentMs: number
}

export class Vendor {
  readonly name: string
  readonly protocol: Protocol
  readonly guard: Guard
  /** Set if the configuration has keys, and the protocol reports why a key was rejected. */
  readonly keys: VendorKeys | undefined
  readonly #config: VendorConfig
  readonly #sharedGuard: RefCounted<Guard>
  readonly #client: RefCounted<VendorClient>
  readonly #origin: string
  readonly #basePath: string
  readonly #limits: ModelLimits
  readonly #lanes: ModelLanes
  #closed: Promise<void> | undefined

  /**
   * `named`: the lanes that the configuration names. `before`: the same vendor in an older configuration. What
   * has not changed stays in use.
   */
  constructor(
    config: VendorConfig,
    url: string,
    spillway: Spillway,
    named: ReadonlySet<string>,
    clock: Clock,
    before?: Vendor,
  ) {
    this.name = config.name
    this.protocol = PROTOCOLS[config.protocol]
    this.#config = config
    this.#sharedGuard = guardOf(config, spillway, before)
    this.guard = this.#sharedGuard.value
    this.keys = this.#keysAfter(before, spillway)
    const { origin, pathname } = new URL(url)
    this.#origin = origin
    this.#basePath = pathname.replace(/\/+$/, '')
    this.#limits = new ModelLimits(config)
    this.#client = this.#clientAfter(before)
    this.#lanes = this.#lanesAfter(before, named, clock)
    nameLanes(this.guard, named)
    withoutNestedCalls(this.guard)
  }

  /** The guard, if the new configuration of the vendor has the same guard options. */
  keepGuard({ guard, hops }: VendorConfig): RefCounted<Guard> | undefined {
    const isSame = isDeepStrictEqual(this.#config.guard, guard) && this.#config.hops === hops
    return isSame ? this.#sharedGuard.retain() : undefined
  }

  #clientAfter(before: Vendor | undefined): RefCounted<VendorClient> {
    const { connectMs } = this.#config
    if (before?.isAt(this.#origin, connectMs) === true) return before.#client.retain()
    return new RefCounted(new VendorClient(this.#origin, connectMs), (each) => each.destroy())
  }

  #keysAfter(before: Vendor | undefined, spillway: Spillway): VendorKeys | undefined {
    const { keys, protocol, keyQuarantine } = this.#config
    // Status 401 of another service may be about the caller.
    if (keys.length === 0 || protocol === 'http' || keyQuarantine === false) return undefined
    const known = before?.guard === this.guard ? before.keys : undefined
    return new VendorKeys(this.#config, { spillway, guard: this.guard }, known)
  }

  /** Lanes are kept, because estimates do not depend on the configuration. */
  #lanesAfter(before: Vendor | undefined, named: ReadonlySet<string>, clock: Clock): ModelLanes {
    const { maxLanes = DEFAULT_MAX_LANES } = this.#config.guard
    const lanes = before === undefined ? new ModelLanes(maxLanes, named, clock) : before.#lanes
    lanes.configure(maxLanes, named, this.#limits)
    return lanes
  }

  isAt(origin: string, connectMs: number): boolean {
    return this.#origin === origin && this.#config.connectMs === connectMs
  }

  get url(): string {
    return this.#origin + this.#basePath
  }

  /** Whether a limit counts the tokens of answers. */
  get countsTokens(): boolean {
    return this.#limits.counts('tokens') || this.#limits.counts('outputTokens')
  }

  /** Whether a limit counts tokens of any kind. */
  get limitsTokens(): boolean {
    return this.countsTokens || this.#limits.counts('inputTokens')
  }

  /** The lane of a request: what the vendor counts separately, or `(other)`. */
  laneOf(model: string | undefined, target: TargetConfig): string | undefined {
    return this.#lanes.laneOf({ model, key: keyNameOf(this.#config, target.key) })
  }

  /** Headroom of the target's lane, from 0 (none) to 1. */
  headroom(model: string | undefined, target: TargetConfig): number {
    const key = this.keys?.choose(target)
    if (key instanceof SpillwayError) return 0
    const keyed = key === undefined ? target : { ...target, key: key.name }
    const parts = { model: target.model ?? model, key: keyNameOf(this.#config, keyed.key) }
    return this.guard.headroom(this.#lanes.nextLaneOf(parts))
  }

  /** How busy this gateway is with requests to the vendor; 1 is the limit. */
  get pressure(): number {
    return pressureOf(this.guard)
  }

  /** What to reserve for a request until its response reports the actual cost. */
  costOf(
    facts: RequestFacts,
    model: string | undefined,
    lane: string | undefined,
  ): Cost | undefined {
    const isFixed = this.#config.estimate === 'fixed'
    const estimates = isFixed ? FIXED_ESTIMATES : this.#lanes.estimatesOf(lane)
    return this.#limits.reservationsOf(model).costOf(facts, estimates)
  }

  /** What a request has cost, by the vendor's rules. */
  countedFor(
    facts: Pick<RequestFacts, 'maxTokens' | 'answers'>,
    model: string | undefined,
    usage: TokenUsage,
  ): Cost {
    return this.#limits.reservationsOf(model).countedFor(facts, usage)
  }

  /** The vendor has this model, although it refused the request. */
  noteKnownModel(model: string | undefined, target: TargetConfig): void {
    this.#lanes.answered({ model, key: keyNameOf(this.#config, target.key) })
  }

  /** The vendor has answered a request for this model successfully. `usage`: undefined if it reported none. */
  answered(
    model: string | undefined,
    target: TargetConfig,
    { prompt, answers, sentMs }: AnsweredRequest,
    usage: TokenUsage | undefined,
  ): void {
    const lane = this.#lanes.answered({ model, key: keyNameOf(this.#config, target.key) })
    if (usage === undefined || this.#config.estimate === 'fixed') return
    this.#lanes.learn(lane, usage, { prompt, answers }, sentMs)
  }

  /** The vendor's key and the configured `headers`. Names and values alternate. */
  ownHeaders(target: TargetConfig): string[] {
    const own: string[] = []
    const key = this.#keyOf(target)
    if (key !== undefined) own.push(...this.protocol.vendorKey(key.secret))
    for (const [name, value] of Object.entries(this.#config.headers)) own.push(name, value)
    return own
  }

  /** Whether the headers of this target have the key of this name. The first key is that of targets that name none. */
  usesKey(target: TargetConfig, name: string): boolean {
    return this.#keyOf(target)?.name === name
  }

  /** Whether the configuration has credentials for the vendor: a key, or a header with one. */
  get hasKey(): boolean {
    return hasCredentials(this.#config)
  }

  /** Whether a stage is in shadow mode. */
  get shadows(): boolean {
    const { shadow, breaker } = this.#config.guard
    return shadow !== undefined || breaker?.shadow === true
  }

  /** It receives the remaining time and the number of the attempt. */
  get hops(): boolean {
    return this.#config.hops
  }

  get retries(): boolean {
    return this.#config.guard.retry !== undefined
  }

  /** Names of the configured `headers`, in lower case. */
  get ownNames(): readonly string[] {
    return Object.keys(this.#config.headers).map((name) => name.toLowerCase())
  }

  /** `onAnswer`: see `VendorResponse.start`. */
  send(
    request: VendorRequest,
    context: CallContext,
    listener: ResponseListener,
    cost: Cost | undefined,
    onAnswer?: (answer: VendorResponse | undefined) => void,
  ): Promise<VendorResponse> {
    // A vendor that answered with an error, or was not reached, generated no tokens.
    const onNoCost = cost && (() => context.settle(zeroCost(cost)))
    const answer = new VendorResponse(context, listener, onNoCost, this.protocol)
    const dispatch = (handler: VendorHandler) =>
      this.#client.value.dispatch(this.#at(request), handler)
    return answer.start(dispatch, onAnswer)
  }

  /** For answers that are read as a whole. */
  fetch(request: VendorRequest, signal: AbortSignal) {
    return this.#client.value.request(this.#at(request), signal)
  }

  /** Closes the guard and the connections, unless another configuration uses them. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await Promise.all([this.keys?.close(), this.#sharedGuard.release(), this.#client.release()])
  }

  /** Adds the path of the vendor's `url`. */
  #at({ method, path, headers, body }: VendorRequest): VendorRequest {
    return { method, path: this.#basePath + path, headers, body }
  }

  #keyOf({ key }: TargetConfig) {
    const { keys } = this.#config
    return key === undefined ? keys[0] : keys.find(({ name }) => name === key)
  }
}

/** The existing guard if its options have not changed, otherwise a new one. */
function guardOf(
  config: VendorConfig,
  spillway: Spillway,
  before: Vendor | undefined,
): RefCounted<Guard> {
  const known = before?.keepGuard(config)
  if (known !== undefined) return known
  const options: GuardOptions = {
    ...(config.guard as GuardOptions),
    classify: classifyAnswer,
    ...(config.hops && { fetch: { hops: true } }),
  }
  const guard =
    before === undefined
      ? spillway.guard(config.name, options)
      : spillway.replaceGuard(config.name, options)
  return new RefCounted(guard, (each) => each.close())
}

/** A rejected key is no failure of the vendor, and a retry would use the same key. */
function classifyAnswer(end: CallEnd): ReturnType<NonNullable<OutcomeOptions['classify']>> {
  const value = 'value' in end ? end.value : undefined
  if (value instanceof VendorResponse && value.rejectsKey) {
    return { outcome: 'ignored', retryable: false }
  }
  return classifyClientFailure(end)
}

function zeroCost(cost: Cost): Cost {
  return Object.fromEntries(Object.keys(cost).map((unit) => [unit, 0]))
}
