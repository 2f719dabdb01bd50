import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../../../test/long-run.js'
import {
  anthropicUsage,
  anyUsage,
  geminiUsage,
  openaiUsage,
  type UsageFormat,
} from './usage-format.js'
import { UsageReader } from './usage-reader.js'

const bytes = (text: string) => new TextEncoder().encode(text)

function readBy(format: UsageFormat, ...chunks: unknown[]) {
  const reader = new UsageReader(format)
  for (const chunk of chunks) reader.push(chunk)
  return reader.read()
}

const read = (...chunks: unknown[]) => readBy(anyUsage, ...chunks)

const event = (data: unknown, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

const OPENAI = { prompt_tokens: 3, completion_tokens: 40, total_tokens: 43 }
const COSTS = { tokens: 43, inputTokens: 3, outputTokens: 40 }
/** A model's text that looks like a report, also to a search for names. */
const DECOY = '"usage":{"prompt_tokens":1,"completion_tokens":1}, \\"usage\\":{"total_tokens":2}'

const chatChunk = (content: string, usage: object | null) =>
  event({ id: 'c', choices: usage === null ? [{ delta: { content } }] : [], usage })

describe('usage of a JSON answer', () => {
  it('usage is undefined if the answer has none', () => {
    expect(read()).toBeUndefined()
    expect(read(bytes('{"choices":[]}'))).toBeUndefined()
    expect(read(bytes('{"usage":null}'))).toBeUndefined()
    expect(read(bytes('{"usage":{}}'))).toBeUndefined()
    expect(read(bytes('{"usage":{"prompt_tokens":'))).toBeUndefined()
  })

  it('usage is read wherever the answer is split', () => {
    const body = JSON.stringify({
      choices: [{ message: { content: `said ${DECOY} \\` } }],
      usage: OPENAI,
      at: 1,
    })
    for (let at = 0; at <= body.length; at++) {
      expect(read(bytes(body.slice(0, at)), bytes(body.slice(at)))).toEqual(COSTS)
    }
    expect(read(...[...body].map(bytes))).toEqual(COSTS)
    expect(read(body)).toEqual(COSTS)
  })

  it('usage is read with cached, reasoning and audio tokens of chat completions', () => {
    const usage = {
      ...OPENAI,
      prompt_tokens_details: { cached_tokens: 2, audio_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 30, audio_tokens: 0 },
    }
    expect(readBy(openaiUsage, JSON.stringify({ usage }))).toEqual({
      ...COSTS,
      cachedTokens: 2,
      reasoningTokens: 30,
      audioInputTokens: 1,
      audioOutputTokens: 0,
    })
  })

  it('usage of a response has cached and reasoning tokens', () => {
    const usage = {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 4 },
      total_tokens: 39,
    }
    const costs = {
      tokens: 39,
      inputTokens: 30,
      outputTokens: 9,
      cachedTokens: 20,
      reasoningTokens: 4,
    }
    expect(readBy(openaiUsage, JSON.stringify({ object: 'response', usage }))).toEqual(costs)
    expect(read(event({ type: 'response.completed', response: { usage } }))).toEqual(costs)
  })

  it('usage of embeddings is the input', () => {
    const costs = { tokens: 8, inputTokens: 8 }
    const data = [{ embedding: [0.25, -1e-3], index: 0 }]
    expect(read(JSON.stringify({ data, usage: { prompt_tokens: 8 } }))).toEqual(costs)
    expect(read({ usage: { prompt_tokens: 8, total_tokens: 8 } })).toEqual(costs)
  })

  it('input tokens of Anthropic include those read from the cache and written to it', () => {
    const usage = {
      input_tokens: 50,
      cache_creation_input_tokens: 248,
      cache_read_input_tokens: 1_800,
      cache_creation: { ephemeral_5m_input_tokens: 148, ephemeral_1h_input_tokens: 100 },
      output_tokens: 503,
    }
    const costs = {
      tokens: 2_601,
      inputTokens: 2_098,
      outputTokens: 503,
      cachedTokens: 1_800,
      cacheWriteTokens: 248,
      cacheWrite1hTokens: 100,
    }
    expect(readBy(anthropicUsage, JSON.stringify({ type: 'message', usage }))).toEqual(costs)
    expect(read(JSON.stringify({ type: 'message', usage }))).toEqual(costs)
  })

  it('usage below another name is ignored', () => {
    const inner = { usage: OPENAI }
    expect(read(JSON.stringify({ choices: [inner], metadata: inner, a: { b: inner } }))).toBe(
      undefined,
    )
    expect(read(JSON.stringify({ messages: inner, 'message.usage': OPENAI }))).toBeUndefined()
  })

  it('total tokens are undefined while input or output tokens are unknown', () => {
    expect(read('{"usage":{"output_tokens":90}}')).toEqual({ outputTokens: 90 })
    expect(read('{"usage":{"output_tokens":90,"total_tokens":99}}')).toEqual({
      tokens: 99,
      outputTokens: 90,
    })
  })

  it('usage is read from JSON behind empty lines and from an array of answers', () => {
    expect(read('\n\n', '\n', '  ', JSON.stringify({ usage: OPENAI }))).toEqual(COSTS)
    const answers = [{ usage: { prompt_tokens: 1 } }, { usage: OPENAI }]
    expect(read(JSON.stringify(answers))).toEqual(COSTS)
  })

  it('usage is read from every JSON text around it', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        fc.array(fc.nat(400), { maxLength: 8 }),
        (before, after, cuts) => {
          const body = bytes(JSON.stringify({ before, usage: OPENAI, after: { after } }))
          const at = [0, ...cuts.filter((cut) => cut < body.length).sort((a, b) => a - b)]
          const chunks = at.map((from, index) => body.slice(from, at[index + 1] ?? body.length))
          expect(read(...chunks)).toEqual(COSTS)
        },
      ),
    )
  })
})

describe('usage of an event stream', () => {
  it('usage in the last event of chat completions is read wherever the stream is split', () => {
    const body = `${chatChunk('Hi', null)}${chatChunk(DECOY, null)}${chatChunk('', OPENAI)}data: [DONE]\n\n`
    for (let at = 0; at <= body.length; at++) {
      expect(read(bytes(body.slice(0, at)), bytes(body.slice(at)))).toEqual(COSTS)
    }
    expect(read(...[...body].map(bytes))).toEqual(COSTS)
  })

  it.each(['\n', '\r\n', '\r'])('usage is read from lines that end with %j', (end) => {
    const body = `: hello\n\n${event({ usage: null }, 'chunk')}${event({ usage: OPENAI }, 'chunk')}`
    const lines = body.replaceAll('\n', end)
    expect(read(lines)).toEqual(COSTS)
    expect(read(...[...lines].map(bytes))).toEqual(COSTS)
  })

  it('usage is read from an event of several lines and from one without an empty line behind it', () => {
    const lines = JSON.stringify({ usage: OPENAI }, null, 2).split('\n')
    expect(read(lines.map((line) => `data: ${line}\n`).join(''))).toEqual(COSTS)
    expect(read(`data:${JSON.stringify({ usage: OPENAI })}`)).toEqual(COSTS)
  })

  it('usage of messages is combined from the first and last events', () => {
    const first = {
      input_tokens: 25,
      cache_creation_input_tokens: 10,
      cache_read_input_tokens: 100,
      output_tokens: 1,
    }
    const start = event({ type: 'message_start', message: { usage: first } }, 'message_start')
    const text = event({ type: 'content_block_delta', delta: { text: DECOY } })
    const last = { output_tokens: 90, input_tokens: null, cache_read_input_tokens: 100 }
    const end = event({ type: 'message_delta', delta: {}, usage: last }, 'message_delta')
    const costs = {
      tokens: 225,
      inputTokens: 135,
      outputTokens: 90,
      cachedTokens: 100,
      cacheWriteTokens: 10,
    }
    const between = Array.from({ length: 50 }, () => bytes(text))
    expect(readBy(anthropicUsage, bytes(start), ...between, bytes(end))).toEqual(costs)
    expect(read(bytes(start), ...between, bytes(end))).toEqual(costs)
    // Without its last event, most of the answer would be missing.
    expect(read(bytes(start), ...between)).toBeUndefined()
  })

  it('usage is read from an event larger than what is held', () => {
    const response = { output: [{ text: `${DECOY} `.repeat(2_000) }], usage: OPENAI }
    const body = event({ type: 'response.completed', response })
    const chunks = body.match(/.{1,1000}/gs) ?? []
    expect(chunks.length).toBeGreaterThan(100)
    expect(read(...chunks.map(bytes), bytes(event({ usage: null })))).toEqual(COSTS)
  })

  it('token counts written by the model are ignored', () => {
    const said = { usage: OPENAI, text: DECOY }
    for (const content of [DECOY, JSON.stringify(said), JSON.stringify(JSON.stringify(said))]) {
      expect(read(JSON.stringify({ choices: [{ message: { content } }] }))).toBeUndefined()
      expect(read(chatChunk(content, null))).toBeUndefined()
      expect(read(JSON.stringify({ [content]: content }))).toBeUndefined()
    }
  })

  it('bodies of other kinds are not read', () => {
    expect(read('spillway ', '"usage":{"prompt_tokens":3}')).toBeUndefined()
    expect(read('dat', 'um: {"usage":{"prompt_tokens":3}}\n\n')).toBeUndefined()
    expect(read('usage: {"usage":{"prompt_tokens":3}}\n\n')).toBeUndefined()
  })
})

describe('memory of a usage reader', () => {
  const MEGABYTE = 'x'.repeat(2 ** 20)
  /** Five megabytes would already be five times too much. */
  const PIECES = usualOrLong(5, 20)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  /** Without garbage, of which V8 keeps more or less, depending on its version. */
  const usedBytes = () => {
    collect()
    // Long strings that were read from bytes are external memory, like array buffers.
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  it.each([
    ['an endless string', '{"a":"', MEGABYTE],
    ['an endless name', '{"', MEGABYTE],
    ['an endless usage object', '{"usage":{"a":"', MEGABYTE],
    ['endless arrays', '{"a":', '['.repeat(2 ** 20)],
    ['endless objects', '{"usage":', '{"usage":'.repeat(2 ** 17)],
    ['an endless event', 'data: {"a":"', MEGABYTE],
    ['an endless line', ': ', MEGABYTE],
    ['endless events without an end', '', `data: {"usage":{"a":1}\n`.repeat(40_000)],
    ['endless blanks', '', ' '.repeat(2 ** 20)],
  ])('%s keeps some kilobytes', (_, first, piece) => {
    const reader = new UsageReader(anyUsage)
    reader.push(first)
    const chunk = Buffer.from(piece)
    reader.push(chunk)
    const before = usedBytes()
    for (let each = 0; each < PIECES; each++) reader.push(chunk)
    expect(usedBytes() - before).toBeLessThan(1e6)
    expect(reader.read()).toBeUndefined()
  })
})

describe('usage of parsed chunks', () => {
  it('usage is known although the reader has transferred the chunks', () => {
    for (const size of [10, 5_000, 20_000]) {
      const reader = new UsageReader(anyUsage)
      const body = bytes(event({ text: 'x'.repeat(size), usage: OPENAI }))
      for (let at = 0; at < body.length; at += 1_000) {
        const chunk = body.slice(at, at + 1_000)
        reader.push(chunk)
        structuredClone(chunk, { transfer: [chunk.buffer] })
      }
      expect(reader.read()).toMatchObject({ tokens: 43 })
    }
  })

  it('usage is undefined for objects whose getters throw', () => {
    const hostile = {
      get usage() {
        throw new Error('no')
      },
    }
    expect(read(hostile, { usage: { input_tokens: 1n } })).toBeUndefined()
  })

  it('usage is read from the objects an SDK yields', () => {
    expect(
      read(
        { type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } } },
        { type: 'ping' },
        { type: 'message_delta', usage: { output_tokens: 90 } },
      ),
    ).toEqual({ tokens: 115, inputTokens: 25, outputTokens: 90 })
    expect(read({ type: 'response.completed', response: { usage: OPENAI } })).toEqual(COSTS)
    expect(read({ usage: null }, null, 5)).toBeUndefined()
  })
})

describe('usage of Gemini', () => {
  const usageMetadata = {
    promptTokenCount: 100,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 30,
    totalTokenCount: 150,
    cachedContentTokenCount: 64,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 90 },
      { modality: 'AUDIO', tokenCount: 10 },
    ],
  }
  const usage = {
    tokens: 150,
    inputTokens: 100,
    outputTokens: 50,
    cachedTokens: 64,
    reasoningTokens: 30,
    audioInputTokens: 10,
  }

  it('usage is read from an answer, from a known and from an unknown vendor', () => {
    const body = JSON.stringify({ candidates: [], usageMetadata })
    expect(readBy(geminiUsage, body)).toEqual(usage)
    expect(readBy(anyUsage, body)).toEqual(usage)
  })

  it('the last event of a stream and the last item of an array count', () => {
    const first = { usageMetadata: { promptTokenCount: 100, totalTokenCount: 100 } }
    expect(readBy(geminiUsage, event(first) + event({ usageMetadata }))).toEqual(usage)
    expect(readBy(geminiUsage, JSON.stringify([first, { usageMetadata }]))).toEqual(usage)
    expect(readBy(anyUsage, first, { usageMetadata })).toEqual(usage)
  })

  it('embeddings have only input', () => {
    const embeddings = JSON.stringify({ usageMetadata: { promptTokenCount: 7 } })
    expect(readBy(geminiUsage, embeddings)).toEqual({ tokens: 7, inputTokens: 7 })
  })
})
