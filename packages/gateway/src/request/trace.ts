/** A request as a tracer sees it. How traces are written down is `observe/`. */
import type { ClientRequest } from './client-http.js'
import type { RequestRecord } from './record.js'

export interface RequestTrace {
  /** What calls of this request are part of. */
  readonly context: unknown
  end(record: RequestRecord): void
}

export interface RequestTracer {
  /** Whether vendors receive trace headers. */
  readonly toVendors: boolean
  begin(request: ClientRequest, path: string): RequestTrace
}

const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage'])

/** Names and values in turn: ours in place of the client's, or none at all. */
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
