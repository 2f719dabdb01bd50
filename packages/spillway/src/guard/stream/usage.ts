/**
 * What an answer really cost, as vendors say it in the answer itself: OpenAI at its end, Anthropic
 * partly at its beginning. Only both ends of a body are looked at, and only once it has passed.
 */
import type { Cost } from '../../shared/rate-limiter/permit.js'

const HEAD_BYTES = 4_096
const TAIL_BYTES = 8_192

/** Our units, by the names vendors have for them. */
const INPUT = ['"prompt_tokens"', '"input_tokens"'] as const
const OUTPUT = ['"completion_tokens"', '"output_tokens"'] as const
const TOTAL = ['"total_tokens"'] as const
/** Where all of them stand. */
const USAGE = '"usage"'

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

  /** As they are: to cut every chunk would cost more than to cut what is left at the end. */
  #keep(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (this.#headBytes < HEAD_BYTES) {
      this.#head.push(chunk)
      this.#headBytes += chunk.length
    }
    // Large ones follow one another: each is all there is to keep.
    if (chunk.length >= TAIL_BYTES && this.#tail.length <= 1) {
      this.#tail[0] = chunk
      this.#tailBytes = chunk.length
      return
    }
    this.#tail.push(chunk)
    this.#tailBytes += chunk.length
    // The last one stays, whatever the lengths say: a chunk that is transferred has none any more.
    while (
      this.#tail.length > 1 &&
      this.#tailBytes - (this.#tail[0] as Uint8Array).length >= TAIL_BYTES
    ) {
      this.#tailBytes -= this.#tail.shift()?.length ?? 0
    }
  }

  /** By unit; nothing, if the answer does not say. */
  read(): Cost | undefined {
    // Most bodies have nothing to do with tokens, and this is how to tell without reading them.
    const last = this.#tail.at(-1)
    if (this.#told === '' && !ENDS.has(last?.[last.length - 1])) return undefined
    if (this.#head.some(isGone) || this.#tail.some(isGone)) return undefined
    const end = endOf(this.#tail)
    // The final usage is at the end, or there is none: the first report alone would be too little.
    if (this.#told === '' && !mentionsTokens(end)) return undefined
    const tail = textOf(end.subarray(-TAIL_BYTES)) + this.#told
    const said = lastUsage(tail)
    const total = lastOf(TOTAL, said)
    const output = lastOf(OUTPUT, said) ?? lastOf(OUTPUT, tail)
    const inputAtEnd = lastOf(INPUT, said) ?? lastOf(INPUT, tail)
    if (output === undefined) {
      if (inputAtEnd === undefined) return undefined
      // Nothing was put out, if the usage is all there; otherwise its beginning is cut off.
      const whole = this.#told !== '' || said.startsWith(USAGE)
      return costOf(total ?? (whole ? inputAtEnd : undefined), inputAtEnd, undefined)
    }
    // What the beginning says of the input holds only together with what the end says.
    const input = inputAtEnd ?? lastOf(INPUT, this.#headText())
    return costOf(total ?? (input === undefined ? undefined : input + output), input, output)
  }

  #headText(): string {
    return textOf(Buffer.concat(this.#head, Math.min(this.#headBytes, HEAD_BYTES)))
  }
}

/** Without what is unknown: of that, what was booked stays. */
function costOf(
  tokens: number | undefined,
  inputTokens: number | undefined,
  outputTokens: number | undefined,
): Cost {
  // Not as one literal with conditional spreads: those would cost more than all the reading before.
  const cost: Record<string, number> = {}
  if (tokens !== undefined) cost.tokens = tokens
  if (inputTokens !== undefined) cost.inputTokens = inputTokens
  if (outputTokens !== undefined) cost.outputTokens = outputTokens
  return cost
}

/** Its reader has transferred it, to another stream or thread. Empty ones are not kept. */
function isGone({ length }: Uint8Array): boolean {
  return length === 0
}

/** Nothing, if the object cannot be asked. */
function usageIn(chunk: object): string {
  try {
    const { usage, message } = chunk as { usage?: unknown; message?: { usage?: unknown } }
    const said = usage ?? message?.usage
    return typeof said === 'object' && said !== null ? JSON.stringify(said) : ''
  } catch {
    return ''
  }
}

const { indexOf } = Buffer.prototype
/** In bytes: to search for a string it would be encoded each time. */
const TOKENS = Buffer.from('_tokens"')

/** Of JSON and of events: `}`, `]`, and what may follow them. */
const ENDS: ReadonlySet<number | undefined> = new Set(Buffer.from('}] \r\n\t'))

function mentionsTokens(bytes: Uint8Array): boolean {
  return indexOf.call(bytes, TOKENS, Math.max(0, bytes.length - TAIL_BYTES)) >= 0
}

/** What is looked at of the last chunks, and more only where that takes no copy. */
function endOf(chunks: readonly Uint8Array[]): Uint8Array {
  const [first, ...others] = chunks
  if (first === undefined) return TOKENS.subarray(0, 0)
  return others.length === 0 ? first : Buffer.concat([first.subarray(-TAIL_BYTES), ...others])
}

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length).toString('latin1')
}

/**
 * The vendor's final usage report, usually near the end. To look for every name in all
 * of the text, when half of them are another vendor's, costs several times as much.
 */
function lastUsage(text: string): string {
  const at = text.lastIndexOf(USAGE)
  return at < 0 ? text : text.slice(at)
}

/** Streams count up, so the last report is the true one. */
function lastOf(names: readonly string[], text: string): number | undefined {
  let last: number | undefined
  let lastAt = -1
  for (const name of names) {
    for (let at = text.lastIndexOf(name); at > lastAt; at = text.lastIndexOf(name, at - 1)) {
      const number = numberAfter(text, at + name.length)
      if (number !== undefined) {
        last = number
        lastAt = at
      }
      if (at === 0) break
    }
  }
  return last
}

const BLANKS = ' \t\r\n'

/** What follows a name: a colon, and then digits. */
function numberAfter(text: string, from: number): number | undefined {
  let at = pastBlanks(text, from)
  if (text[at] !== ':') return undefined
  at = pastBlanks(text, at + 1)
  let number: number | undefined
  for (;;) {
    const digit = text.charCodeAt(at++) - 0x30
    if (!(digit >= 0 && digit <= 9)) return number
    number = (number ?? 0) * 10 + digit
  }
}

function pastBlanks(text: string, from: number): number {
  let at = from
  while (at < text.length && BLANKS.includes(text[at] as string)) at++
  return at
}
