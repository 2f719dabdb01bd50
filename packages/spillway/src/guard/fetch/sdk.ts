/**
 * The constructor options by which a vendor's SDK sends its requests through a guard. The lane of a request is
 * its model, its cost is estimated from its body, and the usage in its answer replaces the estimate.
 */
import { SpillwayError } from '../../core/errors.js'
import {
  bool,
  type Check,
  having,
  object,
  oneOf,
  optional,
  validate,
} from '../../core/options/checks.js'
import { guardMessage } from '../../core/refusal-answer.js'
import type { Clock } from '../../core/time/clock.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { UnitLimit } from '../../shared/rate-limiter/options.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { LimitSettings } from '../../shared/rate-limiter/settings/limit-settings.js'
import { anthropicFormat } from '../llm/anthropic-format.js'
import { azureFormat } from '../llm/azure-format.js'
import {
  ESTIMATE_NAMES,
  type EstimateName,
  type Estimates,
  FIXED_ESTIMATES,
} from '../llm/estimate/lane-estimates.js'
import type { TokenEstimates } from '../llm/estimate/token-estimates.js'
import { geminiFormat } from '../llm/gemini-format.js'
import type { GenAiRecorder } from '../llm/gen-ai.js'
import { openaiFormat } from '../llm/openai-format.js'
import { type QuotaName, type QuotaOptions, quotaOf } from '../llm/quota-model.js'
import { readQuota } from '../llm/quota-options.js'
import { Reservations, type ReservedLimit } from '../llm/reservation.js'
import type { LlmProtocol, VendorFormat } from '../llm/vendor-format.js'
import { checkRunOptions } from '../pipeline/start-call.js'
import type { RunOptions } from '../run-options.js'
import { type Fetch, type FetchOptions, refusalResponse } from './fetch.js'
import { GenAiCall } from './gen-ai-call.js'
import { isSdkErrors, type SdkErrors } from './sdk-errors.js'
import { readSdkRequest, type SdkRequest } from './sdk-request.js'
import { withoutEvents } from './without-events.js'

/** The class of a vendor's SDK, such as `OpenAI` or `Anthropic`. */
export type SdkClass = abstract new (...args: never[]) => object

/** Options of `guard.sdk()`. */
export interface SdkOptions {
  /**
   * The API that the SDK uses. Needed for SDKs other than those of OpenAI and Anthropic. Range: `openai`,
   * `anthropic`, `gemini` or `azure`. Default: recognised by the class.
   */
  protocol?: LlmProtocol
  /**
   * Asks OpenAI to report the usage of streamed chat completions, so that token limits are settled, and removes the
   * additional event from the stream. Set it to false for servers that reject `stream_options`. Default: true
   * if the guard limits tokens.
   */
  streamUsage?: boolean
  /**
   * How the vendor counts tokens towards its limits: `openai`, `azure`, `anthropic`, `bedrock`, `gemini`, or `reported`
   * (the tokens that answers report, for other vendors with one of these APIs); or an object with a `preset` and single
   * rules that differ. Default: that of the protocol; for
   * `openai` that of the host: `openai` for `api.openai.com`, `reported` for all others.
   */
  quota?: QuotaName | QuotaOptions
  /**
   * Where the tokens to reserve come from. `learned`: from earlier answers of the lane. `fixed`: four bytes of text per
   * token, and 1,000 tokens for an answer or `max_tokens` if that is less. Default: `learned`.
   */
  estimate?: EstimateName
  /** Metrics under the GenAI conventions of OpenTelemetry, from `createGenAiMetrics()`. Default: none. */
  genAi?: GenAiRecorder
  /** Options of every call of this client, such as `user`, `priority` or `timeoutMs`. Default: none. */
  call?: RunOptions
}

/** What `guard.sdk()` returns: options for the constructor of an SDK. */
export interface SdkSettings {
  /** Sends requests through the guard. */
  fetch: Fetch
  /** Always 0: retries of the SDK would multiply with those of the guard. */
  maxRetries: 0
}

/** The parts of a guard that `guard.sdk()` uses. */
export interface SdkGuard {
  readonly name: string
  /** Undefined: the guard has none. */
  readonly limits: Pick<LimitSettings, 'all' | 'of'> | undefined
  readonly estimates: TokenEstimates
  readonly clock: Pick<Clock, 'now'>
  fetchWith(options: FetchOptions, call: RunOptions): Fetch
}

const FORMATS: Readonly<Record<LlmProtocol, VendorFormat>> = {
  openai: openaiFormat,
  anthropic: anthropicFormat,
  gemini: geminiFormat,
  azure: azureFormat,
}

/** Sent with requests that may be repeated. Both SDKs and their APIs use this name. */
const IDEMPOTENCY_HEADER = 'idempotency-key'

const readCall: Check<RunOptions> = (value, path, problems) => {
  if (typeof value === 'object' && value !== null) return value
  problems.push({ path, message: 'must be an object with options of a call' })
  return {}
}

const readOptions = object({
  protocol: optional(oneOf('openai', 'anthropic', 'gemini', 'azure')),
  quota: optional(readQuota),
  streamUsage: optional(bool(), true),
  estimate: optional(oneOf(...ESTIMATE_NAMES), 'learned'),
  genAi: optional(having<GenAiRecorder>('metrics of createGenAiMetrics()', 'record')),
  call: optional(readCall, {}),
})

export function createSdk(guard: SdkGuard, sdk: unknown, options: SdkOptions): SdkSettings {
  const path = `guard(${guard.name}).sdk`
  const checked = validate(path, options, readOptions)
  const { protocol } = checked
  checkRunOptions(checked.call)
  const format =
    FORMATS[
      validate(path, sdk, (value, at, problems) => {
        const known = protocol ?? protocolOf(value)
        if (known === undefined) problems.push({ path: at, message: notRecognised(value) })
        return known ?? 'openai'
      })
    ]
  const requests = new SdkRequests(guard, format, checked, isSdkErrors(sdk) ? sdk : undefined)
  return { fetch: (input, init) => requests.send(input, init ?? {}), maxRetries: 0 }
}

/** Each SDK has its base error as a static property, which minified and derived classes keep. */
function protocolOf(sdk: unknown): LlmProtocol | undefined {
  if (typeof sdk !== 'function') return undefined
  if (sdk.name === 'AzureOpenAI') return 'azure'
  if ('OpenAIError' in sdk || sdk.name === 'OpenAI') return 'openai'
  if ('AnthropicError' in sdk || sdk.name === 'Anthropic') return 'anthropic'
  return undefined
}

function notRecognised(sdk: unknown): string {
  const found = typeof sdk === 'function' ? `the class ${sdk.name || '(anonymous)'}` : typeof sdk
  return (
    `must be the class OpenAI, AzureOpenAI or Anthropic, got ${found}; ` +
    `for another SDK with one of these APIs pass { protocol: 'openai' }, 'anthropic', 'gemini' or 'azure'`
  )
}

class SdkRequests {
  readonly #guard: SdkGuard
  readonly #format: VendorFormat
  readonly #options: Pick<ReturnType<typeof readOptions>, 'quota' | 'estimate' | 'genAi'>
  readonly #streamUsage: boolean
  readonly #call: RunOptions
  readonly #errors: SdkErrors | undefined
  /** Cache by the limits of a lane, which are a new array after each change. */
  readonly #reservations = new WeakMap<readonly UnitLimit[], Map<QuotaName, Reservations>>()

  constructor(
    guard: SdkGuard,
    format: VendorFormat,
    options: ReturnType<typeof readOptions>,
    errors: SdkErrors | undefined,
  ) {
    const { streamUsage, call, genAi } = options
    this.#guard = guard
    this.#format = format
    this.#options = options
    this.#call = call
    this.#errors = errors
    const isCounted = genAi !== undefined || guard.limits?.all().some(countsAnswers) === true
    this.#streamUsage = streamUsage && isCounted
  }

  async send(input: Parameters<Fetch>[0], init: RequestInit): Promise<Response> {
    const format = this.#format
    const request = readSdkRequest(format, input, init, this.#streamUsage)
    const { facts, repeatable, body } = request
    const lane = this.#call.lane ?? request.model ?? DEFAULT_LANE
    const reservations = facts && this.#reservationsFor(lane, request)
    const reserved = facts && reservations?.costOf(facts, this.#estimatesOf(lane))
    const measured = this.#measure(input, request)
    const plainCall = this.#callOf(request, reservations, reserved)
    const call = measured === undefined ? plainCall : measured.withUsage(plainCall)
    const fetch = this.#guard.fetchWith(
      {
        ...(repeatable && { idempotencyHeader: IDEMPOTENCY_HEADER }),
        ...(reserved !== undefined && { refundOnError: nothingOf(reserved) }),
        ...(this.#errors !== undefined && { sdk: this.#errors }),
        errors: format.errors,
      },
      call,
    )
    try {
      const response = await fetch(input, body === undefined ? init : { ...init, body })
      const passed = body === undefined ? response : withoutEvents(response, format.isUsageEvent)
      return measured === undefined ? passed : measured.watch(passed)
    } catch (error) {
      measured?.failed(error)
      if (!(error instanceof SpillwayError)) throw error
      const { status, code, url } = error
      const body = format.errorBody({ status, code, message: guardMessage(error) })
      return refusalResponse(error, JSON.stringify({ ...body, error: { ...body.error, url } }))
    }
  }

  #measure(input: Parameters<Fetch>[0], { model }: SdkRequest): GenAiCall | undefined {
    const { genAi } = this.#options
    if (genAi === undefined) return undefined
    const url = input instanceof Request ? input.url : String(input)
    return GenAiCall.begin(genAi, this.#guard.clock, { protocol: this.#format.name, url, model })
  }

  /** By the limits of its lane, and the rules of the vendor that it is sent to. */
  #reservationsFor(lane: string, { host }: SdkRequest): Reservations | undefined {
    const limits = this.#guard.limits?.of(lane).limits
    if (limits === undefined) return undefined
    let byQuota = this.#reservations.get(limits)
    if (byQuota === undefined) {
      byQuota = new Map()
      this.#reservations.set(limits, byQuota)
    }
    const { quota: own } = this.#options
    const named = typeof own === 'string' ? own : own?.preset
    const preset = named ?? quotaOf(this.#format.name, host)
    let found = byQuota.get(preset)
    if (found === undefined) {
      const quota = typeof own === 'object' ? { ...own, preset } : preset
      found = new Reservations(limits.filter(isWhole).map(reservedLimit), quota)
      byQuota.set(preset, found)
    }
    return found
  }

  #callOf(
    { model, facts }: SdkRequest,
    reservations: Reservations | undefined,
    reserved: Cost | undefined,
  ): RunOptions {
    const { lane = model, cost = reserved, onUsage } = this.#call
    const { maxTokens, answers = 1, prompt } = facts ?? {}
    const sentMs = this.#guard.clock.now()
    return {
      ...this.#call,
      ...(lane !== undefined && { lane }),
      ...(cost !== undefined && { cost }),
      ...(reservations !== undefined &&
        reserved !== undefined && {
          costOfUsage: (usage: Cost) => reservations.countedFor({ maxTokens, answers }, usage),
          onUsage: (usage: Cost) => {
            this.#learn(lane ?? DEFAULT_LANE, usage, { prompt, answers }, sentMs)
            onUsage?.(usage)
          },
        }),
    }
  }

  #estimatesOf(lane: string): Estimates {
    return this.#learns ? this.#guard.estimates.of(lane) : FIXED_ESTIMATES
  }

  #learn(...answer: Parameters<TokenEstimates['learn']>): void {
    if (this.#learns) this.#guard.estimates.learn(...answer)
  }

  get #learns(): boolean {
    return this.#options.estimate === 'learned'
  }
}

/** A vendor that answers with an error has generated nothing. */
function nothingOf(cost: Cost): Cost {
  return Object.fromEntries(Object.keys(cost).map((unit) => [unit, 0]))
}

/** What a request reserves depends on the whole limit, not on the part of a sub-window. */
function isWhole({ isSubWindow }: UnitLimit): boolean {
  return isSubWindow !== true
}

function reservedLimit({ unit, spec: { limit, burst } }: UnitLimit): ReservedLimit {
  return { unit, limit, burst: burst === 0 ? undefined : burst }
}

function countsAnswers({ unit }: UnitLimit): boolean {
  return unit === 'tokens' || unit === 'outputTokens'
}
