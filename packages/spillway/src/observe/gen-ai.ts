/**
 * Metrics under the GenAI conventions of OpenTelemetry (status: development), for a meter of OpenTelemetry, a registry
 * of prom-client, or both.
 */
import { validate } from '../core/options/checks.js'
import type { GenAiOperation, GenAiRecorder } from '../guard/llm/gen-ai.js'
import type { Labels } from './instrument.js'
import { type PrometheusRegistry, registerSamples, type Sample } from './prometheus.js'

/** The part of `Meter` of `@opentelemetry/api` that is used. */
export interface GenAiMeter {
  /** Creates a histogram. */
  createHistogram(
    name: string,
    options: { description: string; unit: string; advice: { explicitBucketBoundaries: number[] } },
  ): unknown
}

/** Options of `createGenAiMetrics()`. One of them is needed. */
export interface GenAiMetricsOptions {
  /** The meter that the application got from OpenTelemetry. Default: none. */
  meter?: GenAiMeter
  /** The registry of prom-client that the application serves. Default: none. */
  registry?: PrometheusRegistry
}

interface Described {
  readonly dotted: string
  /** Its name in Prometheus: dots become underscores, and a unit is appended unless it is in braces. */
  readonly name: string
  readonly unit: string
  readonly description: string
  /** Attributes besides those of every metric here. */
  readonly attributes: readonly string[]
  readonly bounds: readonly number[]
}

const SECONDS = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
]
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)

const TOKEN_USAGE: Described = {
  dotted: 'gen_ai.client.token.usage',
  name: 'gen_ai_client_token_usage',
  unit: '{token}',
  description: 'Number of input and output tokens used.',
  attributes: ['gen_ai.token.type'],
  bounds: TOKENS,
}
const DURATION: Described = {
  dotted: 'gen_ai.client.operation.duration',
  name: 'gen_ai_client_operation_duration_seconds',
  unit: 's',
  description: 'GenAI operation duration.',
  attributes: ['error.type'],
  bounds: SECONDS,
}
const FIRST_CHUNK: Described = {
  dotted: 'gen_ai.client.operation.time_to_first_chunk',
  name: 'gen_ai_client_operation_time_to_first_chunk_seconds',
  unit: 's',
  description: 'Time to receive the first chunk of a streamed response.',
  attributes: [],
  bounds: SECONDS,
}

/** Attributes of every metric here. */
const COMMON = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'server.address',
  'server.port',
]

/** Largest number of models with separate series, because callers may choose names of models. */
const MOST_MODELS = 100
const OTHER = '(other)'
/** Series of one Prometheus metric. Further ones are not counted in it. */
const MOST_SERIES = 2_000

type Attributes = Record<string, string | number>
type Add = (value: number, attributes: Attributes) => void

/**
 * Creates metrics under the GenAI conventions. Pass the result to `guard.sdk()` as `genAi`.
 *
 * @example
 * const genAi = createGenAiMetrics({ meter: metrics.getMeter('my-service') })
 * const client = new OpenAI({ ...guard.sdk(OpenAI, { genAi }) })
 */
export function createGenAiMetrics({ meter, registry }: GenAiMetricsOptions): GenAiRecorder {
  validate('genAi', { meter, registry }, (value, path, problems) => {
    if (meter === undefined && registry === undefined) {
      problems.push({ path, message: 'needs a meter, a registry, or both' })
    }
    return value
  })
  const create = (described: Described): Add => {
    const adds = [
      ...(meter === undefined ? [] : [addToMeter(meter, described)]),
      ...(registry === undefined ? [] : [addToRegistry(registry, described)]),
    ]
    return (value, attributes) => {
      for (const add of adds) add(value, attributes)
    }
  }
  return new GenAiHistograms(create(TOKEN_USAGE), create(DURATION), create(FIRST_CHUNK))
}

class GenAiHistograms implements GenAiRecorder {
  readonly #tokens: Add
  readonly #duration: Add
  readonly #firstChunk: Add
  readonly #models = new Set<string>()

  constructor(tokens: Add, duration: Add, firstChunk: Add) {
    this.#tokens = tokens
    this.#duration = duration
    this.#firstChunk = firstChunk
  }

  record(operation: GenAiOperation): void {
    const { errorType, durationMs, firstChunkMs, inputTokens, outputTokens } = operation
    const common: Attributes = {
      'gen_ai.operation.name': operation.operation,
      'gen_ai.provider.name': operation.provider,
    }
    const model = this.#modelOf(operation)
    if (model !== undefined) common['gen_ai.request.model'] = model
    if (operation.serverAddress !== undefined) common['server.address'] = operation.serverAddress
    if (operation.serverPort !== undefined) common['server.port'] = operation.serverPort
    const ended = errorType === undefined ? common : { ...common, 'error.type': errorType }
    this.#duration(durationMs / 1_000, ended)
    if (firstChunkMs !== undefined) this.#firstChunk(firstChunkMs / 1_000, common)
    if (inputTokens !== undefined) {
      this.#tokens(inputTokens, { ...common, 'gen_ai.token.type': 'input' })
    }
    if (outputTokens !== undefined) {
      this.#tokens(outputTokens, { ...common, 'gen_ai.token.type': 'output' })
    }
  }

  /** A model gets its own series once the vendor has answered a request for it, like a lane. */
  #modelOf({ model, errorType }: GenAiOperation): string | undefined {
    if (model === undefined || this.#models.has(model)) return model
    if (errorType !== undefined || this.#models.size >= MOST_MODELS) return OTHER
    this.#models.add(model)
    return model
  }
}

function addToMeter(meter: GenAiMeter, { dotted, unit, description, bounds }: Described): Add {
  const advice = { explicitBucketBoundaries: [...bounds] }
  const histogram = meter.createHistogram(dotted, { description, unit, advice }) as {
    record: Add
  }
  return (value, attributes) => histogram.record(value, attributes)
}

interface Counted {
  readonly labels: Labels
  readonly counts: number[]
  sum: number
}

function addToRegistry(registry: PrometheusRegistry, described: Described): Add {
  const { name, description: help, attributes, bounds } = described
  const labelNames = [...COMMON, ...attributes].map(labelOf)
  const all = new Map<string, Counted>()
  registerSamples(registry, { name, help, type: 'histogram', labelNames }, () =>
    [...all.values()].flatMap((each) => samplesOf(name, bounds, each)),
  )
  return (value, attributes) => {
    const key = JSON.stringify(attributes)
    let counted = all.get(key)
    if (counted === undefined) {
      if (all.size >= MOST_SERIES) return
      counted = { labels: labelsOf(attributes), counts: Array(bounds.length + 1).fill(0), sum: 0 }
      all.set(key, counted)
    }
    const index = bounds.findIndex((bound) => value <= bound)
    const bucket = index === -1 ? bounds.length : index
    counted.counts[bucket] = (counted.counts[bucket] as number) + 1
    counted.sum += value
  }
}

function labelsOf(attributes: Attributes): Labels {
  const entries = Object.entries(attributes)
  return Object.fromEntries(entries.map(([name, value]) => [labelOf(name), String(value)]))
}

function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_')
}

function samplesOf(name: string, bounds: readonly number[], { labels, counts, sum }: Counted) {
  let total = 0
  const buckets = counts.map((count, index): Sample => {
    total += count
    return {
      labels: { le: bounds[index] ?? '+Inf', ...labels },
      value: total,
      metricName: `${name}_bucket`,
    }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: total, metricName: `${name}_count` },
  ]
}
