/** The answer to one request that no target has answered: the last good one, or a static one in the client's format. */
import type { Clock } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import type { StaticAnswerConfig } from '../config/config.js'
import type { ClientRequest } from '../request/client-http.js'
import type { RoutedRequest } from '../request/routed-request.js'
import { uniqueId } from '../response/privacy.js'
import type { Target } from '../routing/target.js'
import type { SentAnswer } from '../vendor/sent-answer.js'
import type { AnswerCopy } from './cached-answers.js'
import type { FallbackAnswers } from './fallback-answers.js'
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

export class RequestFallbacks {
  readonly #answers: FallbackAnswers
  readonly #request: ClientRequest
  readonly #routed: RoutedRequest
  readonly #target: Target
  readonly #clock: Pick<Clock, 'wallMs'>
  #key: { readonly value: string | undefined } | undefined

  /** `target`: the first one of the route. */
  constructor(
    answers: FallbackAnswers,
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target,
    clock: Pick<Clock, 'wallMs'>,
  ) {
    this.#answers = answers
    this.#request = request
    this.#routed = routed
    this.#target = target
    this.#clock = clock
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
  copyOf(response: SentAnswer): AnswerCopy | undefined {
    const { headers } = this.#request
    // Vendors answer a repeated `idempotency-key` with the answer to the earlier request.
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
      // A client that expects a stream cannot read anything else, and other clients cannot read a stream.
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
      createdMs: this.#clock.wallMs(),
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
