/** An incoming request: its API, its record in the log, and its body. */
import type { IncomingMessage } from 'node:http'
import { systemClock } from 'spillway/internal'
import { anthropic } from './anthropic/anthropic.js'
import { azure } from './azure/azure.js'
import type { Dialect } from './dialect.js'
import { gemini } from './gemini/gemini.js'
import type { OpenCall } from './log.js'
import { openai } from './openai/openai.js'

/** Most vendors are known by their paths, Anthropic also by its version header. All others are OpenAI's. */
export function dialectOf(path: string, { headers }: IncomingMessage): Dialect {
  if (/^\/v1(alpha|beta)\/|^\/v1\/models\/[^/]+:/.test(path)) return gemini
  if (path.startsWith('/openai/')) return azure
  if (path === '/v1/chat/completions') return openai
  const isAnthropic = /^\/v1\/messages(\/|$)/.test(path) || 'anthropic-version' in headers
  return isAnthropic ? anthropic : openai
}

export function callOf(
  number: number,
  {
    request,
    path,
    query,
    dialect,
  }: { request: IncomingMessage; path: string; query: URLSearchParams; dialect: Dialect },
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
    key: dialect.keyOf(headers, query),
    idempotencyKey: idempotencyKey === undefined ? undefined : String(idempotencyKey),
    retryCount: retryCount === undefined ? undefined : Number(retryCount),
    model: '',
    streamed: false,
    promptTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    completionTokens: 0,
    reserved: undefined,
    charged: undefined,
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
