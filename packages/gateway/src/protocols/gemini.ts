/** Google's Gemini API: `generateContent`, `streamGenerateContent`, embeddings and token counts. */
import { geminiFormat, remembered } from 'spillway/internal'
import { geminiText } from './gemini-text.js'
import { bearer, type Protocol, requestFormat } from './protocol.js'

export const gemini: Protocol = {
  name: 'gemini',
  callerKey(headers, query = '') {
    const key = headers['x-goog-api-key']
    return typeof key === 'string' ? key : (keyIn(query) ?? bearer(headers))
  },
  queryWithoutKeys,
  vendorKey: (secret) => ['x-goog-api-key', secret],
  format: requestFormat(geminiFormat),
  usage: geminiFormat.usage,
  errors: geminiFormat.errors,
  // Every event of a stream has the usage so far.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  isCutOff: (end) => CANDIDATE.test(end) && !FINISHED.test(end),
  bodyWithModel,
  requestIdHeader: 'x-request-id',
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(geminiFormat.errorBody(complaint)),
  // Not as an event: Google's SDK recognises an error in a stream only if a chunk is nothing but the error's JSON.
  errorEvent: (complaint) => `${JSON.stringify(geminiFormat.errorBody(complaint))}\n\n`,
  textAnswer: geminiText,
  repeatable: remembered(geminiFormat.isRepeatable),
}

const CANDIDATE = /"candidates"\s*:\s*\[\s*\{/
/** A blocked prompt has no candidates, and an error no reason. */
const FINISHED = /"finishReason"\s*:\s*"[^"]|"blockReason"\s*:\s*"|"error"\s*:\s*\{/

const KEY = 'key'
const SECRETS: ReadonlySet<string> = new Set([KEY, 'access_token', 'oauth_token'])

function keyIn(query: string): string | undefined {
  if (!query.includes('=')) return undefined
  return new URLSearchParams(query).get(KEY) || undefined
}

function queryWithoutKeys(query: string): string {
  if (query === '') return query
  const kept = query
    .slice(1)
    .split('&')
    .filter((each) => !isSecret(each))
  return kept.length === 0 ? '' : `?${kept.join('&')}`
}

/** The name of a parameter may be written with escapes. */
function isSecret(parameter: string): boolean {
  return [...new URLSearchParams(parameter).keys()].some((name) => SECRETS.has(name.trim()))
}

const EMBEDDING = /:(embedContent|batchEmbedContents)$/

/** Each part of a batch names the model again, and Google refuses another one than that of the path. */
function bodyWithModel(path: string, body: Buffer, model: string): Buffer | undefined {
  if (!EMBEDDING.test(path)) return undefined
  const whole = JSON.parse(body.toString()) as { model?: unknown; requests?: unknown }
  const parts = Array.isArray(whole.requests) ? whole.requests : []
  for (const part of [whole, ...parts]) {
    const isNamed = typeof part === 'object' && part !== null && Object.hasOwn(part, 'model')
    if (isNamed) part.model = `models/${model}`
  }
  return Buffer.from(JSON.stringify(whole))
}
