/** Measures one request of an SDK for metrics under the GenAI conventions. Its body is read only when its reader reads. */
import { callSafely } from '../../core/events.js'
import { refusalOf } from '../../core/refusal-of.js'
import type { Clock } from '../../core/time/clock.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import { type GenAiRecorder, genAiOperationOf, genAiProviderOf } from '../llm/gen-ai.js'
import type { LlmProtocol } from '../llm/vendor-format.js'
import type { RunOptions } from '../run-options.js'
import { withBody } from '../stream/watched-response.js'

interface CallFacts {
  readonly operation: string
  readonly provider: string
  readonly model: string | undefined
  readonly url: URL
}

export class GenAiCall {
  readonly #recorder: GenAiRecorder
  readonly #clock: Pick<Clock, 'now'>
  readonly #startMs: number
  readonly #facts: CallFacts
  #firstChunkMs: number | undefined
  #usage: Cost = {}
  #isOver = false

  private constructor(recorder: GenAiRecorder, clock: Pick<Clock, 'now'>, facts: CallFacts) {
    this.#recorder = recorder
    this.#clock = clock
    this.#startMs = clock.now()
    this.#facts = facts
  }

  /** Undefined for requests that generate nothing. */
  static begin(
    recorder: GenAiRecorder,
    clock: Pick<Clock, 'now'>,
    request: { protocol: LlmProtocol; url: string; model: string | undefined },
  ): GenAiCall | undefined {
    const url = URL.canParse(request.url) ? new URL(request.url) : undefined
    const operation = url && genAiOperationOf(url.pathname)
    if (url === undefined || operation === undefined) return undefined
    const provider = genAiProviderOf(request.protocol, url.hostname)
    return new GenAiCall(recorder, clock, { operation, provider, model: request.model, url })
  }

  /** Wraps the call so that it also reports its usage here. */
  withUsage(call: RunOptions): RunOptions {
    const onUsage = (usage: Cost) => {
      this.#usage = usage
      call.onUsage?.(usage)
    }
    return { ...call, onUsage }
  }

  failed(error: unknown): void {
    const { name } = (error ?? {}) as { name?: unknown }
    const named = typeof name === 'string' ? name : '_OTHER'
    this.#end(refusalOf(error)?.code ?? named)
  }

  /** A response with this content whose end is recorded. */
  watch(response: Response): Response {
    const errorType = response.status >= 400 ? String(response.status) : undefined
    if (response.body === null) {
      this.#end(errorType)
      return response
    }
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true
    const source: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await source.read()
            if (done) {
              this.#end(errorType)
              return controller.close()
            }
            if (isStream) this.#firstChunkMs ??= this.#clock.now() - this.#startMs
            controller.enqueue(value)
          } catch (error) {
            this.failed(error)
            throw error
          }
        },
        cancel: (reason) => {
          this.#end(errorType)
          return source.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
    return withBody(response, body)
  }

  #end(errorType: string | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    const { operation, provider, model, url } = this.#facts
    const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port)
    const { inputTokens, outputTokens } = this.#usage
    const record = () =>
      this.#recorder.record({
        operation,
        provider,
        model,
        serverAddress: url.hostname,
        serverPort: port,
        errorType,
        durationMs: this.#clock.now() - this.#startMs,
        firstChunkMs: this.#firstChunkMs,
        inputTokens,
        outputTokens,
      })
    callSafely(operation, 'genAi', record, undefined)
  }
}
