/** Any other HTTP service. Its bodies are forwarded unread. */
import { bearer, type Complaint, type Protocol } from './protocol.js'

export const http: Protocol = {
  name: 'http',
  callerKey(headers) {
    const key = headers['x-api-key']
    return bearer(headers) ?? (typeof key === 'string' ? key : undefined)
  },
  vendorKey: (secret) => ['authorization', `Bearer ${secret}`],
  hidesUsage: () => false,
  isUsageEvent: () => false,
  requestIdHeader: 'x-request-id',
  // RFC 9457.
  errorType: 'application/problem+json',
  errorBody: (complaint) => JSON.stringify(problemOf(complaint)),
  errorEvent: (complaint) => `event: error\ndata: ${JSON.stringify(problemOf(complaint))}\n\n`,
  textAnswer: (_, { text }) => ({ type: 'text/plain; charset=utf-8', body: text }),
  repeatable: () => false,
}

function problemOf({ status, code, message, requestId, retryAfterMs }: Complaint): object {
  return {
    title: code,
    status,
    detail: message,
    instance: requestId,
    retry_after_ms: retryAfterMs,
  }
}
