/**
 * Reads the actual cost of an answer from the answer itself: OpenAI reports it at the end, Anthropic partly at
 * the beginning. So only the first and the last bytes of a body are kept, and they are searched when it ends.
 */
import type { Cost } from '../../shared/rate-limiter/permit.js'

const HEAD_BYTES = 4_096
const TAIL_BYTES = 8_192

/** The names that vendors use for our units. */
const INPUT = ['"prompt_tokens"', '"input_tokens"'] as const
const OUTPUT = ['"completion_tokens"', '"output_tokens"'] as const
const TOTAL = ['"total_tokens"'] as const
/** The object that holds all of them. */
const USAGE = '"usage"'

export class UsageReader {
  readonly #head: string[] = []
  #headLength = 0
  #tail: string[] = []
  #tailLength = 0
  /** Usage in chunks that are parsed objects, as an SDK's stream yields them; as JSON. */
  #fromObjects = ''

  push(chunk: unknown): void {
    if (chunk instanceof Uint8Array) this.#keep(chunk)
    else if (typeof chunk === 'string') this.#keep(Buffer.from(chunk))
    else if (typeof chunk === 'object' && chunk !== null) this.#fromObjects += usageIn(chunk)
  }

  /**
   * Copies, because the reader of the chunk may transfer its memory. As Latin-1, one character per byte: names and
   * numbers are ASCII, and copying bytes into buffers of their own takes twice as long.
   */
  #keep({ buffer, byteOffset, length }: Uint8Array): void {
    if (length === 0) return
    const bytes = Buffer.from(buffer, byteOffset, length)
    const end = bytes.toString('latin1', Math.max(0, length - TAIL_BYTES))
    if (this.#headLength < HEAD_BYTES) {
      const start = end.length === length ? end : bytes.toString('latin1', 0, HEAD_BYTES)
      this.#head.push(start)
      this.#headLength += start.length
    }
    if (end.length === TAIL_BYTES) {
      this.#tail = [end]
      this.#tailLength = TAIL_BYTES
      return
    }
    this.#tail.push(end)
    this.#tailLength += end.length
    while (this.#tailLength - (this.#tail[0] as string).length >= TAIL_BYTES) {
      this.#tailLength -= (this.#tail.shift() as string).length
    }
  }

  /** The cost by unit; undefined if the answer does not report it. */
  read(): Cost | undefined {
    // Most bodies report no tokens. Their last character shows that without a search.
    if (this.#fromObjects === '' && !ENDS.has(this.#tail.at(-1)?.at(-1))) return undefined
    const end = this.#tail.join('').slice(-TAIL_BYTES)
    // The final usage is at the end, or there is none: the first report alone would be too little.
    if (this.#fromObjects === '' && !end.includes(TOKENS)) return undefined
    const tail = end + this.#fromObjects
    const said = lastUsage(tail)
    const total = lastOf(TOTAL, said)
    const output = lastOf(OUTPUT, said) ?? lastOf(OUTPUT, tail)
    const inputAtEnd = lastOf(INPUT, said) ?? lastOf(INPUT, tail)
    if (output === undefined) {
      if (inputAtEnd === undefined) return undefined
      // A complete usage object without output tokens means that there was no output.
      const whole = this.#fromObjects !== '' || said.startsWith(USAGE)
      return costOf(total ?? (whole ? inputAtEnd : undefined), inputAtEnd, undefined)
    }
    // Input tokens at the beginning count only together with output tokens at the end.
    const input = inputAtEnd ?? lastOf(INPUT, this.#head.join('').slice(0, HEAD_BYTES))
    return costOf(total ?? (input === undefined ? undefined : input + output), input, output)
  }
}

/** Leaves out unknown units: for those the estimate stays booked. */
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

/** Empty if the object has no usage, or if reading it throws. */
function usageIn(chunk: object): string {
  try {
    const { usage, message } = chunk as { usage?: unknown; message?: { usage?: unknown } }
    const said = usage ?? message?.usage
    return typeof said === 'object' && said !== null ? JSON.stringify(said) : ''
  } catch {
    return ''
  }
}

const TOKENS = '_tokens"'

/** Of JSON and of events: `}`, `]`, and what may follow them. */
const ENDS: ReadonlySet<string | undefined> = new Set('}] \r\n\t')

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
