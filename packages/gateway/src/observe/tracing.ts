/**
 * Spans of requests, for OpenTelemetry. The gateway uses the SDK that the process was started with, and has none of its
 * own. Without an SDK, spans are dropped.
 */

import type { Attributes, Context, Span } from '@opentelemetry/api'
import { documentationUrl } from 'spillway/internal'
import type { GuardTracer } from 'spillway/metrics'
import { openTelemetryTracer } from 'spillway/metrics'
import type { RequestRecord } from '../request/record.js'
import type { RequestTrace, RequestTracer } from '../request/trace.js'

type Api = typeof import('@opentelemetry/api')

export interface Tracing {
  readonly guards: GuardTracer
  readonly requests: RequestTracer
}

export interface TracingOptions {
  /** Attributes of other conventions for a request. */
  readonly attributes?: ((record: RequestRecord) => Attributes) | undefined
  readonly fromCallers: boolean
  readonly toVendors: boolean
}

export async function loadTracing(options: TracingOptions): Promise<Tracing> {
  const api = await loadApi()
  return { guards: openTelemetryTracer(api), requests: createRequestTracer(api, options) }
}

/** An optional peer dependency. */
async function loadApi(): Promise<Api> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    const message = `tracing: needs the package @opentelemetry/api, and an SDK: see ${documentationUrl('operations/tracing')}`
    throw new TypeError(message, { cause })
  }
}

function createRequestTracer(api: Api, options: TracingOptions): RequestTracer {
  const { fromCallers, toVendors, attributes } = options
  const tracer = api.trace.getTracer('spillway-gateway')
  return {
    toVendors,
    begin({ method = 'GET', headers }, path) {
      const around = fromCallers
        ? api.propagation.extract(api.ROOT_CONTEXT, headers)
        : api.ROOT_CONTEXT
      const span = tracer.startSpan(
        method,
        {
          kind: api.SpanKind.SERVER,
          attributes: { 'http.request.method': method, 'url.path': path },
        },
        around,
      )
      return new RequestSpan(api, span, api.trace.setSpan(around, span), attributes)
    },
  }
}

class RequestSpan implements RequestTrace {
  readonly #api: Api
  readonly #span: Span
  readonly context: Context
  readonly #attributes: TracingOptions['attributes']

  constructor(api: Api, span: Span, context: Context, attributes: TracingOptions['attributes']) {
    this.#api = api
    this.#span = span
    this.context = context
    this.#attributes = attributes
  }

  /** Sets the fields of the access log, except the caller. */
  end(record: RequestRecord): void {
    const { method, route, vendor, model, status, code, stage, attempts, degraded, id } = record
    const span = this.#span
    if (route !== undefined) span.updateName(`${method} ${route}`)
    const facts = {
      'http.response.status_code': status,
      'http.route': route,
      'spillway.request_id': id,
      'spillway.vendor': vendor,
      'spillway.model': model,
      'spillway.attempts': attempts,
      'spillway.degraded': degraded?.step,
    }
    const more = this.#attributes?.(record) ?? {}
    for (const [name, value] of Object.entries({ ...facts, ...more })) {
      if (value !== undefined) span.setAttribute(name, value)
    }
    if (code !== undefined) {
      span.addEvent('spillway.refused', { code, ...(stage !== undefined && { stage }) })
    }
    if (status >= 500) span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
    span.end()
  }
}
