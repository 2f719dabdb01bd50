/** An incoming request: its API, what is recorded about it, and its body. */
import type { IncomingMessage } from 'node:http'
import { systemClock } from 'spillway/internal'
import { anthropic } from './anthropic/anthropic.js'
import type { Dialect } from './dialect.js'
import type { OpenCall } from './log.js'
import { openai } from './openai/openai.js'

/** Anthropic's requests are known by their path or their version header. All others are OpenAI's. */
export function dialectOf(path: string, { headers }: IncomingMessage): Dialect {
  if (path === '/v1/chat/completions') return openai
  const isAnthropic = /^\/v1\/messages(\/|$)/.test(path) || 'anthropic-version' in headers
  return isAnthropic ? anthropic : openai
}

export function callOf(
  number: number,
  { request, path, dialect }: { request: IncomingMessage; path: string; dialect: Dialect },
): OpenCall {
  const { headers, method = 'GET' } = request
  const idempotencyKey = headers['idempotency-key']
  const retryCount = headers['x-stainless-retry-count']
  return {
    number,
    requestId: `req_mock${number}`,
    api: dialect.name,
    method,
    path,
    headers,
    atMs: systemClock.now(),
    key: dialect.keyOf(headers),
    idempotencyKey: idempotencyKey === undefined ? undefined : String(idempotencyKey),
    retryCount: retryCount === undefined ? undefined : Number(retryCount),
    model: '',
    streamed: false,
    promptTokens: 0,
    completionTokens: 0,
    status: undefined,
    headersAtMs: undefined,
    chunks: 0,
    tokensSent: 0,
    bytes: 0,
    end: 'open',
    endedAtMs: undefined,
  }
}

export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  try {
    for await (const part of request) parts.push(part)
  } catch {
    return undefined
  }
  return Buffer.concat(parts)
}

/** Undefined if it is no JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
