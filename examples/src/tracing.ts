import * as otel from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { createSpillway } from 'spillway'
import { openTelemetryTracer } from 'spillway/metrics'

// In production: the OpenTelemetry SDK of the application, with an exporter.
const exporter = new InMemorySpanExporter()
const spanProcessors = [new SimpleSpanProcessor({ exporter })]
otel.trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors }))

const spillway = createSpillway({ tracer: openTelemetryTracer(otel) })
const openai = spillway.guard('openai', {
  timeout: { callMs: '30s' },
  userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }],
  retry: { attempts: 2, baseMs: 1, budget: 1 },
})
await openai.run(
  ({ attempt }) => {
    if (attempt === 1) throw Object.assign(new Error('busy'), { status: 503 })
    return 'answered'
  },
  { user: 'ann', lane: 'gpt-4o' },
)
await openai.run(() => 'answered', { user: 'ann' }).catch(() => {})

for (const { name, attributes, events } of exporter.getFinishedSpans()) {
  const { 'spillway.attempt': attempt = '', 'spillway.outcome': outcome = '' } = attributes
  const code = events[0]?.attributes?.code ?? ''
  console.log([name, attempt, outcome, code].join(' ').trimEnd())
}
await spillway.close()
