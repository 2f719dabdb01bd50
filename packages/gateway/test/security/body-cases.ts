/** Random request bodies: type, encoding, charset, whitespace, framing, order of fields and size. */
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import type { Dice } from './mutate.js'

export interface BodyCase {
  readonly path: string
  readonly contentType: string | undefined
  /** Kind of content that the header declares: JSON, perhaps JSON, a form, or another type. */
  readonly typeIs: 'json' | 'maybe' | 'form' | 'other'
  readonly isUtf8Declared: boolean
  readonly contentEncoding: string | undefined
  /** As it is sent. */
  readonly bytes: Buffer
  /** Where it is cut into chunks. */
  readonly cuts: readonly number[]
}

const TYPES: readonly (readonly [string | undefined, BodyCase['typeIs'], boolean])[] = [
  ['application/json', 'json', true],
  ['application/JSON', 'json', true],
  [' Application/Json', 'json', true],
  ['application/json;', 'json', true],
  ['application/json; charset=utf-8', 'json', true],
  ['application/json ; Charset="UTF-8"', 'json', true],
  ['application/json;charset=UTF8', 'json', true],
  ['application/json; utf-8', 'json', true],
  ['application/vnd.api+json', 'json', true],
  ['text/json', 'json', true],
  [undefined, 'maybe', true],
  ['', 'maybe', true],
  ['text/plain;charset=UTF-8', 'maybe', true],
  ['TEXT/PLAIN', 'maybe', true],
  ['application/json; charset=utf-16', 'json', false],
  ['application/json; charset=iso-8859-1', 'json', false],
  ['text/plain; charset=utf-16le', 'maybe', false],
  ['application/octet-stream', 'other', true],
  ['application/x-www-form-urlencoded', 'other', true],
  ['application/jsonx', 'other', true],
  ['json', 'other', true],
  ['application/json, text/plain', 'other', true],
  ['application/json; charset=utf-8; charset=utf-16', 'other', true],
  ['multipart/form-data; boundary=x', 'form', true],
  ['application/\xa0json', 'other', true],
]

/** The default quality takes a hundred times as long. */
function brotli(bytes: Buffer): Buffer {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } })
}

const ENCODINGS: readonly (readonly [string | undefined, (bytes: Buffer) => Buffer])[] = [
  ['gzip', (bytes) => gzipSync(bytes)],
  ['GZip', (bytes) => gzipSync(bytes)],
  ['x-gzip', (bytes) => gzipSync(bytes)],
  ['deflate', (bytes) => deflateSync(bytes)],
  ['br', brotli],
  ['identity', (bytes) => bytes],
  ['', (bytes) => bytes],
  // Declared, but not encoded that way.
  ['gzip', (bytes) => bytes],
  ['br', (bytes) => bytes],
  ['deflate', (bytes) => deflateRawSync(bytes)],
  ['gzip', (bytes) => gzipSync(bytes).subarray(0, -9)],
  // Not declared.
  [undefined, (bytes) => gzipSync(bytes)],
  // Not supported.
  ['zstd', (bytes) => bytes],
  ['compress', (bytes) => bytes],
  ['gzip, br', (bytes) => brotli(gzipSync(bytes))],
  ['gzip, gzip', (bytes) => gzipSync(gzipSync(bytes))],
]

const PATHS = [
  '/v1/chat/completions',
  '/v1/chat/completions',
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/embeddings',
  '/v1/messages',
  '/v1/messages',
  '/v1/audio/transcriptions',
  '/v1/files',
  '/v1/fine_tuning/jobs',
] as const

export const MODELS = [
  'gpt',
  'cheap-1',
  'limited-1',
  'claude',
  'café',
  '模型',
  'a"b\\c',
  '😀',
  'x'.repeat(200),
]
const BAD_MODELS = [
  '',
  'x'.repeat(201),
  '\ud800',
  5,
  true,
  ['gpt'],
  { model: 'gpt' },
  'y'.repeat(5_000),
]
const NUMBERS = ['0', '1', '16', '1e3', '128000', '1e12', '1e999', '-5', '2.5', '1.0', '-0', '1E+2']
const NUMBER_FIELDS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens_to_sample',
  'n',
  'best_of',
]
const TEXTS = [
  '',
  'hello',
  '"model":"hidden"',
  '{"model":"hidden","stream":true}',
  'naïve café 模型 😀',
  'line\nbreak\ttab\\slash/"quote"',
  '\u2028\u0000\u001f',
  '\ud83d',
  'data:image/png;base64,iVBORw0KGgo=',
]

/** Draws whether an unusual variant is used. */
function rarely({ below }: Dice, oneIn: number): boolean {
  return below(oneIn) === 0
}

function space({ below, pick }: Dice, isLoose: boolean): string {
  if (!isLoose) return ''
  let text = ''
  for (let i = below(3); i > 0; i--) text += pick([' ', '\n', '\r\n', '\t'])
  return text
}

/** A JSON string, some of its characters escaped. */
function quoted(text: string, dice: Dice, isLoose: boolean): string {
  if (!isLoose || text.length > 300 || rarely(dice, 2)) return JSON.stringify(text)
  let written = '"'
  for (let i = 0; i < text.length; i++) {
    const hex = text.charCodeAt(i).toString(16).padStart(4, '0')
    const plain = JSON.stringify(text[i]).slice(1, -1)
    written += rarely(dice, 3)
      ? `\\u${rarely(dice, 2) ? hex.toUpperCase() : hex}`
      : text[i] === '/' && rarely(dice, 2)
        ? '\\/'
        : // Halves of a pair have to stay together, or be escaped both.
          /[\ud800-\udfff]/.test(text[i] as string)
          ? `\\u${hex}`
          : plain
  }
  return `${written}"`
}

function written(value: unknown, dice: Dice, isLoose: boolean): string {
  const gap = () => space(dice, isLoose)
  if (typeof value === 'string') return quoted(value, dice, isLoose)
  if (Array.isArray(value)) {
    return `[${gap()}${value.map((each) => written(each, dice, isLoose)).join(`${gap()},${gap()}`)}${gap()}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, each]) => [name, written(each, dice, isLoose)])
  return objectText(fields as [string, string][], dice, isLoose)
}

function objectText(fields: readonly (readonly [string, string])[], dice: Dice, isLoose: boolean) {
  const gap = () => space(dice, isLoose)
  const texts = fields.map(([name, text]) => {
    return `${quoted(name, dice, isLoose)}${gap()}:${gap()}${text}`
  })
  return `{${gap()}${texts.join(`${gap()},${gap()}`)}${gap()}}`
}

function text(dice: Dice): string {
  if (rarely(dice, 60)) return 'word '.repeat(3_000 + dice.below(20_000))
  if (rarely(dice, 40)) return 'iVBORw0KGgo'.repeat(150 + dice.below(100))
  return dice.pick(TEXTS).repeat(1 + dice.below(3))
}

function messages(dice: Dice): unknown {
  const content = rarely(dice, 3)
    ? [{ type: 'text', text: text(dice) }, { nested: [[1, 2.5, null, true, { model: 'inner' }]] }]
    : text(dice)
  return Array.from({ length: dice.below(3) }, () => ({ role: 'user', content }))
}

function deep(levels: number): string {
  return `${'['.repeat(levels)}${']'.repeat(levels)}`
}

function fieldsOf(dice: Dice, isLoose: boolean): [string, string][] {
  const { pick, below } = dice
  const fields: [string, string][] = []
  const add = (name: string, value: unknown) => {
    fields.push([name, written(value, dice, isLoose)])
  }
  if (!rarely(dice, 12)) add('model', rarely(dice, 14) ? pick(BAD_MODELS) : pick(MODELS))
  if (rarely(dice, 2)) add('stream', rarely(dice, 10) ? pick(['true', 1, null]) : rarely(dice, 2))
  for (const name of NUMBER_FIELDS) {
    if (!rarely(dice, 5)) continue
    // 1e12 answers would use up any limit.
    const usable = name.startsWith('max') ? NUMBERS : NUMBERS.filter((each) => each !== '1e12')
    fields.push([name, rarely(dice, 20) ? pick(['"100"', 'null', '[]']) : pick(usable)])
  }
  if (!rarely(dice, 6)) add('messages', messages(dice))
  if (rarely(dice, 4)) add(pick(['prompt', 'input', 'system', 'instructions', 'tools']), text(dice))
  if (rarely(dice, 4)) add('stream_options', pick([null, {}, { include_usage: true }, 'x']))
  if (rarely(dice, 4)) add(pick(['metadata', 'user', '__proto__', 'x']), { model: 'inner', n: 9 })
  if (rarely(dice, 40)) fields.push(['deep', deep(190 + below(20))])
  // Twice, or in another case.
  if (rarely(dice, 15) && fields.length > 0) fields.push([pick(fields)[0], '"other"'])
  if (rarely(dice, 25)) add(pick(['Model', 'MODEL', 'mode\u017f', 'Stream', 'Max_Tokens']), 'other')
  return shuffled(fields, dice)
}

function shuffled<T>(items: readonly T[], { below }: Dice): T[] {
  const rest = [...items]
  return items.map(() => rest.splice(below(rest.length), 1)[0] as T)
}

function damaged(bytes: Buffer, { below, pick }: Dice): Buffer {
  const at = below(bytes.length + 1)
  const piece = Buffer.from(
    pick(['{', '}', '"', ',', ':', '[', '\0', '\n', '\\', '0', '\xff', 'é', '//', '"model":"x",']),
    pick(['latin1', 'utf8'] as const),
  )
  return pick([
    () => bytes.subarray(0, at),
    () => Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]),
    () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]),
    () => Buffer.concat([bytes, piece]),
    () => Buffer.concat([piece, bytes]),
  ])()
}

function inCharset(json: string, dice: Dice): Buffer {
  const { pick } = dice
  if (!rarely(dice, 20)) return Buffer.from(json)
  return pick([
    () => Buffer.from(`\ufeff${json}`),
    () => Buffer.from(json, 'utf16le'),
    () => Buffer.from(`\ufeff${json}`, 'utf16le'),
    () => Buffer.from(json, 'utf16le').swap16(),
    () => Buffer.from(json, 'latin1'),
  ])()
}

export function bodyCase(dice: Dice): BodyCase {
  const isLoose = rarely(dice, 2)
  const json = objectText(fieldsOf(dice, isLoose), dice, isLoose)
  let bytes = inCharset(`${space(dice, isLoose)}${json}${space(dice, isLoose)}`, dice)
  if (rarely(dice, 8)) bytes = damaged(bytes, dice)
  if (rarely(dice, 60)) bytes = Buffer.from(dice.pick(['', ' ', '[]', '"x"', 'null', '5', '{}{}']))
  if (rarely(dice, 200)) bytes = Buffer.concat([bytes, Buffer.alloc(300_000, ' ')])
  const [contentEncoding, encode] = rarely(dice, 3)
    ? dice.pick(ENCODINGS)
    : ([undefined, (all: Buffer) => all] as const)
  const [contentType, typeIs, isUtf8Declared] = rarely(dice, 2) ? dice.pick(TYPES) : TYPES[0]!
  const sent = encode(bytes)
  const cuts = Array.from({ length: dice.below(5) }, () => dice.below(sent.length + 1))
  return {
    path: dice.pick(PATHS),
    contentType,
    typeIs,
    isUtf8Declared,
    contentEncoding,
    bytes: sent,
    cuts: cuts.sort((one, other) => one - other),
  }
}

export function chunksOf({ bytes, cuts }: BodyCase): Buffer[] {
  const ends = [...cuts, bytes.length]
  const chunks = ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end))
  return chunks.filter((chunk) => chunk.length > 0)
}
