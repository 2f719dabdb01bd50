/** The interface between requests and the tracer, which is in `observe/`. */
import type { ClientRequest } from './client-http.js'
import type { RequestRecord } from './record.js'

export interface RequestTrace {
  /** Parent of the spans of this request's calls. */
  readonly context: unknown
  end(record: RequestRecord): void
}

export interface RequestTracer {
  /** Whether vendors receive trace headers. */
  readonly toVendors: boolean
  begin(request: ClientRequest, path: string): RequestTrace
}

const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage'])

/** Replaces the client's trace headers by the gateway's, or removes them. Names and values alternate. */
export function withTrace(
  headers: readonly string[],
  ours: Readonly<Record<string, string>> | undefined,
): string[] {
  const passed: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (!TRACE_HEADERS.has(name)) passed.push(name, headers[i + 1] as string)
  }
  for (const [name, value] of Object.entries(ours ?? {})) {
    if (TRACE_HEADERS.has(name)) passed.push(name, value)
  }
  return passed
}
