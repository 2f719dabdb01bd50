/** A vendor that knows its keys: which are valid, and which have a spent quota. It notes every request by its key. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** `exhausted`: no answer says for how long. `windowMs`: exhausted until the end of each window, and then again. */
export type KeyStanding = 'valid' | 'invalid' | 'exhausted' | { readonly windowMs: number }

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
} as const

const ANSWER = {
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

export async function startKeyVendor(): Promise<KeyVendor> {
  const standing = new Map<string, KeyStanding>()
  const seen: { key: string; atMs: number }[] = []
  const server = createServer((request, response) => {
    const key = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const atMs = Date.now()
    seen.push({ key, atMs })
    const now = standing.get(key) ?? 'valid'
    const leftMs = typeof now === 'object' ? now.windowMs - (atMs % now.windowMs) : 0
    request.resume().on('end', () => {
      const kind = now === 'valid' ? undefined : now === 'invalid' ? 'invalid' : 'exhausted'
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
