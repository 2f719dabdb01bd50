/** What differs between the two APIs: reading requests, writing responses and errors. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Excess, Standing } from './limits.js'

export interface Asked {
  readonly model: string
  readonly streamed: boolean
  /** OpenAI only: `stream_options.include_usage`. */
  readonly includeUsage: boolean
  readonly promptTokens: number
  /** Infinity: not in the request. */
  readonly maxTokens: number
}

export interface Answer extends Asked {
  readonly number: number
  readonly tokens: number
  readonly createdMs: number
}

export interface Failure {
  readonly status: number
  readonly type: string
  readonly message: string
  readonly param?: string | undefined
  readonly code?: string | undefined
}

export interface Dialect {
  readonly name: 'openai' | 'anthropic'
  readonly requestIdHeader: string
  keyOf(headers: IncomingHttpHeaders): string
  /** Reads a request, or returns what is wrong with it. */
  read(body: unknown, headers: IncomingHttpHeaders): Asked | Failure
  models(names: readonly string[]): unknown
  limitHeaders(standings: readonly Standing[], wallMs: number): Record<string, string>

  failure(status: number, message?: string): Failure
  limited(excess: Excess, model: string): Failure
  unauthorized(key: string): Failure
  errorBody(failure: Failure, requestId: string): unknown

  /** The response in one piece. */
  whole(answer: Answer): unknown
  /** The events of a stream before its tokens, for each token, and after them. */
  opening(answer: Answer): string[]
  token(answer: Answer, index: number): string
  closing(answer: Answer): string[]
  /** The event of a stream that fails after it began. */
  breakdown(): string
}

export function isFailure(value: Asked | Failure): value is Failure {
  return 'status' in value
}

/** Numbers, so that a test shows which tokens are missing, doubled or out of order. */
export function tokenText(index: number): string {
  return index === 0 ? '0' : ` ${index}`
}

export function wholeText({ tokens }: Answer): string {
  return Array.from({ length: tokens }, (_, index) => tokenText(index)).join('')
}

/** Whether the response ended because of the request's token limit. */
export function isTruncated({ tokens, maxTokens }: Answer): boolean {
  return tokens >= maxTokens
}

/** Assumes four characters per token. */
export function countTokens(...contents: unknown[]): number {
  const characters = contents.reduce<number>((sum, content) => sum + lengthOf(content), 0)
  return Math.max(1, Math.ceil(characters / 4))
}

/** Of a text, a list of parts with a `text`, or messages with a `content`. */
function lengthOf(content: unknown): number {
  if (typeof content === 'string') return content.length
  if (Array.isArray(content)) return content.reduce((sum, part) => sum + lengthOf(part), 0)
  if (typeof content !== 'object' || content === null) return 0
  const { text, content: inner } = content as { text?: unknown; content?: unknown }
  return lengthOf(text) + lengthOf(inner)
}

/** For each unit, the limit that has least left, because there is one header per unit. */
export function tightest(standings: readonly Standing[]): Standing[] {
  const byUnit = new Map<string, Standing>()
  for (const standing of standings) {
    const other = byUnit.get(standing.unit)
    if (other === undefined || remaining(standing) < remaining(other)) {
      byUnit.set(standing.unit, standing)
    }
  }
  return [...byUnit.values()]
}

export function remaining({ limit, used }: Standing): number {
  return Math.max(0, limit - used)
}

/** The text after `per` in a refusal. */
export function windowText(windowMs: number): string {
  return windowMs === 60_000 ? 'minute' : `${windowMs / 1_000} s`
}
