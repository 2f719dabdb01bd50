/**
 * Expected result for a body, computed with `JSON.parse` and zlib on the complete body. Shares no code with the
 * gateway's reader, so that the two can disagree.
 */
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateSync,
  type ZlibOptions,
} from 'node:zlib'
import type { BodyCase } from './body-cases.js'

export interface Expected {
  /** Refused with this status. */
  readonly status?: 400 | 413 | 415
  /** Forwarded unchanged. */
  readonly isUnread?: boolean
  readonly facts?: {
    readonly model: string | undefined
    readonly streamed: boolean
    readonly promptTokens: number
    readonly maxTokens: number | undefined
    readonly answers: number
  }
  /** The decoded body. */
  readonly json?: Record<string, unknown>
}

const FIELDS = {
  openai: {
    values:
      'model stream stream_options max_completion_tokens max_tokens max_output_tokens n best_of',
    prompt: 'messages prompt input instructions tools',
  },
  anthropic: {
    values: 'model stream max_tokens max_tokens_to_sample',
    prompt: 'system messages tools prompt',
  },
}

const SUPPORTED = ['', 'identity', 'gzip', 'x-gzip', 'deflate', 'br']

export function protocolOf(path: string): 'openai' | 'anthropic' {
  return path === '/v1/messages' ? 'anthropic' : 'openai'
}

export function expectedOf(one: BodyCase, contentDecides: boolean, maxBytes: number): Expected {
  const { path, typeIs, bytes } = one
  const isOverLimit = bytes.length > maxBytes
  const generates = /(completions|responses|embeddings|messages)$/.test(path)
  const takesForm = /(transcriptions|files)$/.test(path)
  if (bytes.length === 0) return generates ? { status: 400 } : {}
  const isUnread =
    (takesForm && typeIs === 'form') || (!generates && !contentDecides && typeIs !== 'json')
  if (isUnread) return isOverLimit ? { status: 413 } : { isUnread }
  if (typeIs === 'form' || typeIs === 'other' || !one.isUtf8Declared) return { status: 415 }
  const decoded = decode(one, maxBytes)
  if (typeof decoded === 'number') return { status: decoded }
  if (decoded.length === 0) return generates ? { status: 400 } : {}
  return withoutAnswer(readJson(decoded, protocolOf(path)), path)
}

function decode({ contentEncoding = '', bytes }: BodyCase, maxOutputLength: number) {
  const options = { maxOutputLength }
  if (!SUPPORTED.includes(contentEncoding.toLowerCase())) return 415
  if (bytes.length > maxOutputLength) return 413
  try {
    switch (contentEncoding.toLowerCase()) {
      case '':
      case 'identity':
        return bytes
      case 'gzip':
      case 'x-gzip':
        return gunzipSync(bytes, options)
      case 'deflate':
        return inflateSync(bytes, options)
      case 'br':
        return brotliDecompressSync(bytes, options)
      default:
        return 400
    }
  } catch (error) {
    return isTooLarge(error) || isTooLargeBeforeItsEnd(contentEncoding, bytes, options) ? 413 : 400
  }
}

function isTooLarge(error: unknown): boolean {
  return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
}

/** Of a body that was cut off. */
function isTooLargeBeforeItsEnd(encoding: string, bytes: Buffer, options: ZlibOptions): boolean {
  if (!/gzip/i.test(encoding)) return false
  try {
    gunzipSync(bytes, { ...options, finishFlush: constants.Z_SYNC_FLUSH })
    return false
  } catch (error) {
    return isTooLarge(error)
  }
}

function readJson(bytes: Buffer, protocol: 'openai' | 'anthropic'): Expected {
  let text: string
  let value: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    value = JSON.parse(text)
  } catch {
    return { status: 400 }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { status: 400 }
  const json = value as Record<string, unknown>
  const values = FIELDS[protocol].values.split(' ')
  const prompt = FIELDS[protocol].prompt.split(' ')
  const { names, depth } = outline(text)
  if (depth > 200) return { status: 400 }
  for (const known of [...values, ...prompt]) {
    const alike = names.filter((name) => isAlike(name, known))
    if (alike.length > 1 || alike.some((name) => name !== known)) return { status: 400 }
  }
  for (const name of values) if (!isUsable(name, json[name])) return { status: 400 }
  return { facts: factsOf(json, protocol, prompt), json }
}

function isUsable(name: string, value: unknown): boolean {
  if (value === undefined || value === null || name === 'stream_options') return true
  if (name === 'stream') return typeof value === 'boolean'
  if (name !== 'model') return typeof value === 'number'
  if (typeof value !== 'string' || value.length === 0 || value.length > 200) return false
  return Buffer.from(value).toString() === value
}

/** Case-insensitive, as some parsers compare names. */
function isAlike(one: string, other: string): boolean {
  const escaped = one.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  return new RegExp(`^(?:${escaped})$`, 'iu').test(other)
}

/** Embeddings have no output tokens. */
function withoutAnswer(expected: Expected, path: string): Expected {
  if (expected.facts === undefined || !path.endsWith('/embeddings')) return expected
  return { ...expected, facts: { ...expected.facts, maxTokens: 0 } }
}

/** The names of the object itself, and how deep it is. The text is known to be JSON. */
function outline(text: string): { names: string[]; depth: number } {
  const names: string[] = []
  let level = 0
  let depth = 0
  for (const [token, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/gs)) {
    if (token === '{' || token === '[') depth = Math.max(depth, ++level)
    else if (token === '}' || token === ']') level--
    else if (level === 1 && colon !== undefined) {
      names.push(JSON.parse(token.slice(0, -colon.length)))
    }
  }
  return { names, depth }
}

function factsOf(
  json: Record<string, unknown>,
  protocol: 'openai' | 'anthropic',
  prompt: readonly string[],
): NonNullable<Expected['facts']> {
  const amount = (name: string) => {
    const value = json[name]
    return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
      ? value
      : undefined
  }
  const largest = (...names: string[]) => {
    const set = names.filter((each) => json[each] !== undefined && json[each] !== null)
    const most = Math.max(...set.map((each) => amount(each) ?? Number.NaN))
    return set.length === 0 || Number.isNaN(most) ? undefined : most
  }
  const isOpenai = protocol === 'openai'
  let promptTokens = 0
  for (const name of prompt) if (json[name] != null) promptTokens += tokensIn(json[name])
  return {
    model: (json.model ?? undefined) as string | undefined,
    streamed: json.stream === true,
    promptTokens: Math.ceil(promptTokens),
    maxTokens: isOpenai
      ? largest('max_completion_tokens', 'max_tokens', 'max_output_tokens')
      : largest('max_tokens', 'max_tokens_to_sample'),
    answers: isOpenai ? Math.max(1, amount('n') ?? 0, amount('best_of') ?? 0) : 1,
  }
}

function tokensIn(value: unknown): number {
  if (typeof value === 'string') {
    const isDataUrl =
      /^data:[\w.+-]+\/[\w.+-]+;base64,/.test(value) &&
      /^[\w+/:;,.=-]*$/.test(value.slice(0, 2_000))
    const isFile = isDataUrl || /^[A-Za-z0-9+/_-]{2000}/.test(value)
    return isFile ? 1_000 : Buffer.byteLength(value) / 4
  }
  if (typeof value !== 'object' || value === null) return 1
  const inside = Object.values(value).reduce((sum: number, each) => sum + tokensIn(each), 0)
  return Array.isArray(value) ? inside : inside + 4
}
