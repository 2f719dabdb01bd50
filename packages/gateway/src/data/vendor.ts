/** One vendor: its guard, its connections, its lanes, and how a request looks on the way to it. */
import { isDeepStrictEqual } from 'node:util'
import type { CallContext, Guard, GuardOptions, Spillway } from 'spillway'
import type { TargetConfig, VendorConfig } from '../config/config.js'
import { PROTOCOLS } from '../protocols/index.js'
import type { Protocol, RequestFacts } from '../protocols/protocol.js'
import { AnswerLengths } from '../tokens/answer-lengths.js'
import { type Cost, Reservations } from '../tokens/reservation.js'
import type { WireRequest } from '../wire/ask.js'
import { Line } from '../wire/line.js'
import { classifyByBlame } from './blame.js'
import { Held } from './held.js'
import { presentableName } from './presentable.js'
import { type AnswerListener, VendorAnswer } from './vendor-answer.js'

/** Models come from requests, and lanes are remembered: no request may fill the memory. */
const MOST_LANES = 1_000
const OTHER_LANE = '(other)'
const CREDENTIAL = /authorization|(^|[-_])(key|token)$/

/** What is known of a lane. */
interface Lane {
  readonly answers: AnswerLengths
  /** It has answered: it is not somebody's invention. */
  proven: boolean
}

export class Vendor {
  readonly name: string
  readonly protocol: Protocol
  readonly guard: Guard
  readonly #config: VendorConfig
  readonly #heldGuard: Held<Guard>
  readonly #line: Held<Line>
  readonly #origin: string
  readonly #basePath: string
  readonly #units: ReadonlySet<string>
  readonly #reservations: Reservations
  readonly #lanes: Map<string, Lane>
  #closed: Promise<void> | undefined

  /** `before`: the same vendor in an older configuration. What has not changed stays in use. */
  constructor(config: VendorConfig, url: string, spillway: Spillway, before?: Vendor) {
    this.name = config.name
    this.protocol = PROTOCOLS[config.protocol]
    this.#config = config
    this.#heldGuard = guardOf(config, spillway, before)
    this.guard = this.#heldGuard.value
    const { origin, pathname } = new URL(url)
    this.#origin = origin
    this.#basePath = pathname.replace(/\/+$/, '')
    this.#units = new Set(config.guard.limits?.map(({ unit = 'requests' }) => unit))
    this.#reservations = new Reservations(config.guard.limits ?? [])
    this.#line = this.#lineAfter(before)
    // How long answers of a model are does not depend on who is asked for them.
    this.#lanes = before === undefined ? new Map() : before.#lanes
  }

  /** Its guard, for a configuration that says the same of it. */
  keepGuard({ guard }: VendorConfig): Held<Guard> | undefined {
    return isDeepStrictEqual(this.#config.guard, guard) ? this.#heldGuard.hold() : undefined
  }

  #lineAfter(before: Vendor | undefined): Held<Line> {
    const { connectMs } = this.#config
    if (before?.isAt(this.#origin, connectMs) === true) return before.#line.hold()
    return new Held(new Line(this.#origin, connectMs), (each) => each.destroy())
  }

  isAt(origin: string, connectMs: number): boolean {
    return this.#origin === origin && this.#config.connectMs === connectMs
  }

  get url(): string {
    return this.#origin + this.#basePath
  }

  /** Whether what an answer cost matters to a limit. */
  get countsTokens(): boolean {
    return this.#units.has('tokens') || this.#units.has('outputTokens')
  }

  /** Whether a limit counts tokens of any kind. */
  get limitsTokens(): boolean {
    return this.countsTokens || this.#units.has('inputTokens')
  }

  /** What the vendor counts apart: the model, and the key if there are several. */
  laneOf(model: string | undefined, target: TargetConfig): string | undefined {
    const key = this.#config.keys.length > 1 ? this.#keyOf(target)?.name : undefined
    const lane = model === undefined ? key : key === undefined ? model : `${model} (${key})`
    if (lane === undefined || this.#lanes.has(lane)) return lane
    // Lanes are shown to everybody: a key or a prompt in the place of a model has none of its own.
    if (model !== undefined && presentableName(model) !== model) return OTHER_LANE
    if (this.#lanes.size >= MOST_LANES && !this.#forgetOne()) return OTHER_LANE
    this.#laneOf(lane)
    return lane
  }

  /** What it could take on of this model with this key: from 0, nothing now, to 1. */
  headroom(model: string | undefined, target: TargetConfig): number {
    return this.guard.headroom(this.laneOf(target.model ?? model, target))
  }

  /** What to reserve for a request until its response reports the actual cost. */
  costOf(facts: RequestFacts, lane: string | undefined): Cost | undefined {
    return this.#reservations.costOf(facts, () => this.#laneOf(lane).answers.estimate())
  }

  /** A response had this many output tokens, in `answers` answers. */
  learn(lane: string | undefined, outputTokens: number, answers: number): void {
    const known = this.#laneOf(lane)
    known.proven = true
    known.answers.add(outputTokens / answers)
  }

  /** Our key, and what else goes with every request. */
  ownHeaders(target: TargetConfig): string[] {
    const own: string[] = []
    const key = this.#keyOf(target)
    if (key !== undefined) own.push(...this.protocol.vendorKey(key.secret))
    for (const [name, value] of Object.entries(this.#config.headers)) own.push(name, value)
    return own
  }

  /** We say who we are, by a key or a header. */
  get hasKey(): boolean {
    return this.#config.keys.length > 0 || this.ownNames.some((name) => CREDENTIAL.test(name))
  }

  /** Some of its stages only report. */
  get shadows(): boolean {
    const { shadow, breaker } = this.#config.guard
    return shadow !== undefined || breaker?.shadow === true
  }

  get retries(): boolean {
    return this.#config.guard.retry !== undefined
  }

  /** The names of headers that are ours to set. */
  get ownNames(): readonly string[] {
    return Object.keys(this.#config.headers).map((name) => name.toLowerCase())
  }

  send(
    request: WireRequest,
    context: CallContext,
    listener: AnswerListener,
    cost: Cost | undefined,
  ): Promise<VendorAnswer> {
    // Who refuses or fails has generated nothing, nor has one that could not be reached.
    const onNothing = cost && (() => context.settle(nothingOf(cost)))
    const answer = new VendorAnswer(context, listener, onNothing)
    return answer.askedBy((handler) => this.#line.value.ask(this.#at(request), handler))
  }

  /** For whoever reads the answer by himself, and has time. */
  ask(request: WireRequest, signal: AbortSignal) {
    return this.#line.value.request(this.#at(request), signal)
  }

  /** What no other configuration uses is closed with it. */
  close(): Promise<void> {
    this.#closed ??= Promise.all([this.#heldGuard.letGo(), this.#line.letGo()]).then(() => {})
    return this.#closed
  }

  /** The vendor's own address may be a folder. */
  #at({ method, path, headers, trustedUpTo = 0, body }: WireRequest): WireRequest {
    return { method, path: this.#basePath + path, headers, trustedUpTo, body }
  }

  #keyOf({ key }: TargetConfig) {
    const { keys } = this.#config
    return key === undefined ? keys[0] : keys.find(({ name }) => name === key)
  }

  #laneOf(lane = OTHER_LANE): Lane {
    let known = this.#lanes.get(lane)
    if (known === undefined) {
      known = { answers: new AnswerLengths(), proven: false }
      this.#lanes.set(lane, known)
    }
    return known
  }

  /** The oldest that nobody has ever answered for. */
  #forgetOne(): boolean {
    for (const [name, { proven }] of this.#lanes) {
      if (!proven) return this.#lanes.delete(name)
    }
    return false
  }
}

/** The one there is, if nothing about it has changed; otherwise another that takes its place. */
function guardOf(
  config: VendorConfig,
  spillway: Spillway,
  before: Vendor | undefined,
): Held<Guard> {
  const known = before?.keepGuard(config)
  if (known !== undefined) return known
  const options: GuardOptions = { ...(config.guard as GuardOptions), classify: classifyByBlame }
  const guard =
    before === undefined
      ? spillway.guard(config.name, options)
      : spillway.replaceGuard(config.name, options)
  return new Held(guard, (each) => each.close())
}

function nothingOf(cost: Cost): Cost {
  return Object.fromEntries(Object.keys(cost).map((unit) => [unit, 0]))
}
