/**
 * What an answer really cost, as vendors say it in the answer itself: OpenAI at its end, Anthropic
 * partly at its beginning. Only both ends of a body are looked at, and only once it has passed.
 */
import type { Cost } from '../../shared/rate-limiter/permit.js'

const HEAD_BYTES = 4_096
const TAIL_BYTES = 8_192

/** Our units, by the names vendors have for them. */
const NAMES = {
  inputTokens: /"(?:prompt|input)_tokens"\s*:\s*(\d+)/g,
  outputTokens: /"(?:completion|output)_tokens"\s*:\s*(\d+)/g,
  tokens: /"total_tokens"\s*:\s*(\d+)/g,
} as const

export class UsageReader {
  readonly #head: Uint8Array[] = []
  #headBytes = 0
  readonly #tail: Uint8Array[] = []
  #tailBytes = 0
  /** Of chunks that are objects already, as an SDK's stream yields them. */
  #told = ''

  push(chunk: unknown): void {
    if (chunk instanceof Uint8Array) this.#keep(chunk)
    else if (typeof chunk === 'string') this.#keep(Buffer.from(chunk))
    else if (typeof chunk === 'object' && chunk !== null) this.#told += usageIn(chunk)
  }

  #keep(chunk: Uint8Array): void {
    if (this.#headBytes < HEAD_BYTES) {
      this.#head.push(chunk.subarray(0, HEAD_BYTES - this.#headBytes))
      this.#headBytes += chunk.length
    }
    const end = chunk.length > TAIL_BYTES ? chunk.subarray(-TAIL_BYTES) : chunk
    this.#tail.push(end)
    this.#tailBytes += end.length
    while (this.#tailBytes - (this.#tail[0]?.length ?? 0) >= TAIL_BYTES && this.#tail.length > 1) {
      this.#tailBytes -= this.#tail.shift()?.length ?? 0
    }
  }

  /** By unit; nothing, if the answer does not say. */
  read(): Cost | undefined {
    if (this.#told === '' && !mentions(this.#head) && !mentions(this.#tail)) return undefined
    const head = textOf(this.#head)
    const tail = textOf(this.#tail) + this.#told
    const input = lastOf(NAMES.inputTokens, tail) ?? lastOf(NAMES.inputTokens, head)
    const output = lastOf(NAMES.outputTokens, tail)
    if (input === undefined && output === undefined) return undefined
    const tokens = lastOf(NAMES.tokens, tail) ?? (input ?? 0) + (output ?? 0)
    return {
      tokens,
      ...(input !== undefined && { inputTokens: input }),
      ...(output !== undefined && { outputTokens: output }),
    }
  }
}

function usageIn(chunk: object): string {
  const { usage, message } = chunk as { usage?: unknown; message?: { usage?: unknown } }
  const said = usage ?? message?.usage
  return typeof said === 'object' && said !== null ? JSON.stringify(said) : ''
}

/** Most bodies have nothing to do with tokens, and this is how to tell without reading them. */
function mentions(chunks: readonly Uint8Array[]): boolean {
  const [only] = chunks
  const bytes = chunks.length === 1 ? asBuffer(only as Uint8Array) : Buffer.concat(chunks)
  return bytes.includes('_tokens"')
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length)
}

function textOf(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString('latin1')
}

/** Streams count up: the last word is the true one. */
function lastOf(name: RegExp, text: string): number | undefined {
  let last: number | undefined
  for (const [, number] of text.matchAll(name)) last = Number(number)
  return last
}
