/**
 * Answers of a route that need no vendor, for requests that no target has answered: the last good answer to the same
 * request, then a static one. The rules are those of a guard's fallbacks: they answer for failures and refusals, before
 * any byte was sent, and never in place of an answer such as 404.
 */
import { isDeepStrictEqual } from 'node:util'
import { SpillwayError } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import { retryAfterFromHeaders } from 'spillway/http'
import { reasonOfRefusal } from 'spillway/internal'
import type { FallbackAnswerConfig, StaticAnswerConfig } from '../config/config.js'
import type { ClientRequest } from '../request/client-http.js'
import type { RoutedRequest } from '../request/routed-request.js'
import { RequestError } from '../response/errors.js'
import { uniqueId } from '../response/privacy.js'
import type { Target } from '../routing/target.js'
import type { VendorResponse } from '../vendor/vendor-response.js'
import { type AnswerCopy, CachedAnswers } from './cached-answers.js'
import { requestKey } from './request-key.js'

export interface FallbackAnswer {
  readonly step: 'cached' | 'static'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Of a cached answer. */
  readonly ageMs?: number
}

const EVENTS = 'text/event-stream'

/** The fallback answers of one route. */
export class FallbackAnswers {
  readonly steps: readonly FallbackAnswerConfig[]
  readonly cached: CachedAnswers | undefined

  /** `before`: of the same route in an older configuration. Its cached answers stay if their options have not changed. */
  constructor(steps: readonly FallbackAnswerConfig[], before?: FallbackAnswers) {
    this.steps = steps
    const config = steps.find((step) => step.kind === 'cached')
    const known = before?.cached
    if (config === undefined) return
    this.cached = isDeepStrictEqual(known?.config, config) ? known : new CachedAnswers(config)
  }

  /** `target`: the first one of the route. */
  forRequest(request: ClientRequest, routed: RoutedRequest, target: Target): RequestFallbacks {
    return new RequestFallbacks(this, request, routed, target)
  }
}

/** The fallback answers for one request. */
export class RequestFallbacks {
  readonly #answers: FallbackAnswers
  readonly #request: ClientRequest
  readonly #routed: RoutedRequest
  readonly #target: Target
  #key: { readonly value: string | undefined } | undefined

  constructor(
    answers: FallbackAnswers,
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target,
  ) {
    this.#answers = answers
    this.#request = request
    this.#routed = routed
    this.#target = target
  }

  /** The first step that has an answer for this reason and in the form that the client expects. */
  answerFor(reason: DegradedReason): FallbackAnswer | undefined {
    for (const step of this.#answers.steps) {
      if (!step.on.includes(reason)) continue
      const answer = step.kind === 'cached' ? this.#cachedAnswer() : this.#staticAnswer(step)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  /** Keeps the answer for later, while it is sent to the client. Undefined: it is not kept. */
  copyOf(response: VendorResponse): AnswerCopy | undefined {
    const { headers } = this.#request
    // With the key of an older request, vendors repeat the answer to that request.
    if (headers['idempotency-key'] !== undefined) return undefined
    if (/\bno-store\b/i.test(headers['cache-control'] ?? '')) return undefined
    if (this.#routed.facts.streamed && !response.isEventStream) return undefined
    const key = this.#cacheKey()
    return key === undefined ? undefined : this.#answers.cached?.copyOf(key, response)
  }

  #cachedAnswer(): FallbackAnswer | undefined {
    const key = this.#cacheKey()
    const found = key === undefined ? undefined : this.#answers.cached?.find(key)
    if (found === undefined) return undefined
    const { headers, bytes } = found.answer
    return { step: 'cached', status: 200, headers, body: bytes, ageMs: found.ageMs }
  }

  #staticAnswer({ status, text, body, contentType = '' }: StaticAnswerConfig) {
    const step = 'static' as const
    const { facts, path, parsed } = this.#routed
    const { streamed } = facts
    if (text === undefined) {
      // The client of a stream cannot read anything else, and other clients cannot read a stream.
      const isEvents = contentType.toLowerCase().startsWith(EVENTS)
      const fits = streamed ? isEvents && status === 200 : !isEvents || parsed.json === undefined
      if (!fits) return undefined
      return { step, status, headers: { 'content-type': contentType }, body: body ?? '' }
    }
    const answer = this.#target.vendor.protocol.textAnswer(path, {
      text,
      model: facts.model ?? '',
      streamed,
      id: uniqueId(),
      fields: parsed.json?.fields ?? new Map(),
    })
    return answer && { step, status, headers: { 'content-type': answer.type }, body: answer.body }
  }

  #cacheKey(): string | undefined {
    const { cached } = this.#answers
    if (cached === undefined) return undefined
    this.#key ??= {
      value: requestKey(this.#request, this.#routed, this.#target, cached.config),
    }
    return this.#key.value
  }
}

/** When the client may retry, as far as what the fallback replaces says so: an error, or a vendor's answer. */
export function retryAfterMsOf(failure: unknown): number | undefined {
  if (failure instanceof SpillwayError) return failure.retryAfterMs
  return retryAfterFromHeaders((failure as Partial<VendorResponse>).headers, Date.now())
}

/** Why a fallback may answer in place of this error. Undefined: it may not. */
export function reasonOfError(error: unknown, attempts: number): DegradedReason | undefined {
  // The request is wrong, or the client has left.
  if (error instanceof RequestError) return undefined
  if (error instanceof SpillwayError) {
    // Another gateway has a better answer.
    return error.code === 'SHUTTING_DOWN' ? undefined : reasonOfRefusal(error.code)
  }
  // Before an attempt only the gateway itself can have failed, which must not be hidden.
  return attempts > 0 ? 'error' : undefined
}

/** The same for the status of a vendor's answer. */
export function reasonOfStatus(status: number): DegradedReason | undefined {
  if (status === 429) return 'limited'
  return status >= 500 ? 'error' : undefined
}
