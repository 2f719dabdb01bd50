/**
 * Requests under the GenAI conventions of OpenTelemetry (`telemetry.genAi`). Only requests that generate, and that a
 * vendor has received, are operations; refusals before that are in the gateway's own metrics.
 */
import type { Attributes } from '@opentelemetry/api'
import { genAiOperationOf, genAiProviderOf } from 'spillway/internal'
import type { GenAiMeter, GenAiOperation, GenAiRecorder } from 'spillway/metrics'
import type { VendorConfig } from '../config/config.js'
import type { RequestRecord } from '../request/record.js'

/** The meter of the process, if it has the API of OpenTelemetry. Without an SDK, its values are dropped. */
export async function loadMeter(): Promise<{ meter?: GenAiMeter }> {
  try {
    const { metrics } = await import('@opentelemetry/api')
    return { meter: metrics.getMeter('spillway-gateway') as GenAiMeter }
  } catch {
    return {}
  }
}

type Vendors = () => readonly VendorConfig[]

export class GenAiRequests {
  readonly #vendors: Vendors
  #recorder: GenAiRecorder | undefined

  constructor(vendors: Vendors) {
    this.#vendors = vendors
  }

  recordTo(recorder: GenAiRecorder): void {
    this.#recorder = recorder
  }

  add(record: RequestRecord): void {
    const operation = this.#operationOf(record)
    if (operation !== undefined) this.#recorder?.record(operation)
  }

  /** Attributes of the request's span. */
  attributesOf(record: RequestRecord): Attributes {
    const found = this.#operationOf(record)
    if (found === undefined) return {}
    const attributes: Attributes = {
      'gen_ai.operation.name': found.operation,
      'gen_ai.provider.name': found.provider,
    }
    if (found.model !== undefined) attributes['gen_ai.request.model'] = found.model
    if (found.serverAddress !== undefined) attributes['server.address'] = found.serverAddress
    if (found.serverPort !== undefined) attributes['server.port'] = found.serverPort
    if (found.errorType !== undefined) attributes['error.type'] = found.errorType
    if (found.inputTokens !== undefined) {
      attributes['gen_ai.usage.input_tokens'] = found.inputTokens
    }
    if (found.outputTokens !== undefined) {
      attributes['gen_ai.usage.output_tokens'] = found.outputTokens
    }
    return attributes
  }

  #operationOf(record: RequestRecord): GenAiOperation | undefined {
    if (record.attempts === 0) return undefined
    const vendor = this.#vendors().find(({ name }) => name === record.vendor)
    const operation = genAiOperationOf(record.path)
    if (vendor === undefined || vendor.protocol === 'http' || operation === undefined) {
      return undefined
    }
    const { url } = vendor
    const { hostname = 'mock', port } = url === 'mock' ? {} : addressOf(url)
    const { status, code, usage, streamed } = record
    return {
      operation,
      provider: genAiProviderOf(vendor.protocol, hostname),
      model: record.sentModel ?? record.model,
      serverAddress: hostname,
      serverPort: port,
      errorType: code ?? (status >= 400 ? String(status) : undefined),
      durationMs: record.durationMs,
      firstChunkMs: streamed && status < 400 ? record.firstByteMs : undefined,
      inputTokens: usage?.inputTokens,
      outputTokens: usage?.outputTokens,
    }
  }
}

function addressOf(url: string): { hostname: string; port: number } {
  const { hostname, port, protocol } = new URL(url)
  return { hostname, port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) }
}
