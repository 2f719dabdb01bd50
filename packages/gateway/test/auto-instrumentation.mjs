/**
 * Loaded into a gateway process with `--import`, as operators load OpenTelemetry: the real packages for node:http and
 * undici, without a change of the gateway. Appends each span to the file SPANS.
 */
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

const exporter = {
  export(spans, done) {
    const lines = spans.map((span) => {
      const { kind, attributes, parentSpanContext } = span
      const { spanId, traceId } = span.spanContext()
      const path = attributes['url.path']
      const status = attributes['http.response.status_code']
      const parent = parentSpanContext?.spanId
      return JSON.stringify({ kind, path, status, spanId, traceId, parent })
    })
    appendFileSync(process.env.SPANS, `${lines.join('\n')}\n`)
    done({ code: 0 })
  },
  shutdown: async () => {},
}

const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
trace.setGlobalTracerProvider(provider)
propagation.setGlobalPropagator(new W3CTraceContextPropagator())
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
for (const instrumentation of [new HttpInstrumentation(), new UndiciInstrumentation()]) {
  instrumentation.setTracerProvider(provider)
  instrumentation.enable()
}
// The instrumentation patches node:http when it is required. Its classes are the ones that `import` returns.
createRequire(import.meta.url)('node:http')
