/** A vendor with valid, invalid and exhausted keys. It records the key of every request. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * `exhausted`: answers without a time to wait. `windowMs`: exhausted until the end of each window. `model`: the daily
 * requests of this model are used up.
 */
export type KeyStanding =
  | 'valid'
  | 'invalid'
  | 'exhausted'
  | { readonly windowMs: number }
  | { readonly model: string }

export interface KeyVendor {
  readonly url: string
  /** By secret. Other keys are valid. */
  readonly standing: Map<string, KeyStanding>
  /** The secrets of all requests, in order, and when they came. */
  readonly seen: { readonly key: string; readonly atMs: number }[]
  requestsOf(key: string): number
}

const ERRORS = {
  invalid: {
    message: 'Incorrect API key provided.',
    type: 'invalid_request_error',
    param: null,
    code: 'invalid_api_key',
  },
  exhausted: {
    message: 'You exceeded your current quota, please check your plan and billing details.',
    type: 'insufficient_quota',
    param: null,
    code: 'insufficient_quota',
  },
  daily: {
    message:
      'Rate limit reached for this model on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 3h0m0s.',
    type: 'requests',
    param: null,
    code: 'rate_limit_exceeded',
  },
} as const

const ANSWER = {
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

function kindOf(standing: KeyStanding, body: string): keyof typeof ERRORS | undefined {
  if (standing === 'valid') return undefined
  if (standing === 'invalid') return 'invalid'
  if (typeof standing === 'string' || 'windowMs' in standing) return 'exhausted'
  return JSON.parse(body).model === standing.model ? 'daily' : undefined
}

export async function startKeyVendor(): Promise<KeyVendor> {
  const standing = new Map<string, KeyStanding>()
  const seen: { key: string; atMs: number }[] = []
  const server = createServer((request, response) => {
    const key = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const atMs = Date.now()
    seen.push({ key, atMs })
    const now = standing.get(key) ?? 'valid'
    const leftMs =
      typeof now === 'object' && 'windowMs' in now ? now.windowMs - (atMs % now.windowMs) : 0
    let body = ''
    request
      .on('data', (chunk) => (body += chunk))
      .on('end', () => {
        const kind = kindOf(now, body)
        const status = kind === undefined ? 200 : kind === 'invalid' ? 401 : 429
        const wait = leftMs > 0 ? { 'retry-after-ms': String(leftMs) } : {}
        response.writeHead(status, { 'content-type': 'application/json', ...wait })
        response.end(JSON.stringify(kind === undefined ? ANSWER : { error: ERRORS[kind] }))
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    standing,
    seen,
    requestsOf: (key) => seen.filter((each) => each.key === key).length,
  }
}
