import { describe, expect, it } from 'vitest'
import { UsageReader } from './usage.js'

function read(...chunks: unknown[]) {
  const reader = new UsageReader()
  for (const chunk of chunks) reader.push(chunk)
  return reader.read()
}

const bytes = (text: string) => new TextEncoder().encode(text)
const OPENAI = '"usage":{"prompt_tokens":3,"completion_tokens":40,"total_tokens":43}'

describe('UsageReader', () => {
  it('usage is undefined if the answer has none', () => {
    expect(read()).toBeUndefined()
    expect(read(bytes('{"choices":[]}'))).toBeUndefined()
  })

  it('usage is found across chunk boundaries and after a large chunk', () => {
    const costs = { tokens: 43, inputTokens: 3, outputTokens: 40 }
    expect(
      read(bytes('x'.repeat(70_000)), bytes(OPENAI.slice(0, 30)), bytes(OPENAI.slice(30))),
    ).toEqual(costs)
    expect(read(...[...OPENAI].map(bytes))).toEqual(costs)
    expect(read(OPENAI)).toEqual(costs)
  })

  it('usage is combined from the first and last chunk of a long answer', () => {
    const start = bytes('{"usage":{"input_tokens":25,"output_tokens":1}}')
    const end = bytes('{"usage":{"output_tokens":90}}')
    const between = Array.from({ length: 50 }, () => bytes('text '.repeat(400)))
    expect(read(start, ...between, end)).toEqual({ tokens: 115, inputTokens: 25, outputTokens: 90 })
  })

  it('usage is undefined if the end of a long answer has none', () => {
    const start = bytes('{"usage":{"input_tokens":25,"output_tokens":1}}')
    expect(read(start, bytes(`${'text '.repeat(4_000)}}`))).toBeUndefined()
  })

  it.each(['"max_tokens":5', '"max_output_tokens":null'])(
    'usage is undefined when a long answer ends with %s',
    (last) => {
      const early = bytes('{"usage":{"input_tokens":25,"output_tokens":900},"text":"')
      expect(read(early, bytes('x'.repeat(20_000)), bytes(`",${last}}`))).toBeUndefined()
    },
  )

  it('total tokens are undefined while input or output tokens are unknown', () => {
    const long = bytes('x'.repeat(20_000))
    expect(read(long, bytes('{"usage":{"output_tokens":90}}'))).toEqual({ outputTokens: 90 })
    expect(read(long, bytes('{"usage":{"output_tokens":90,"total_tokens":99}}'))).toEqual({
      tokens: 99,
      outputTokens: 90,
    })
    expect(read(bytes('{"output_tokens":90}'), long, bytes('{"input_tokens":9}'))).toEqual({
      inputTokens: 9,
    })
  })

  it('usage without output tokens is the input', () => {
    const costs = { tokens: 8, inputTokens: 8 }
    const long = bytes('x'.repeat(20_000))
    expect(read(long, bytes('{"usage":{"prompt_tokens":8}}'))).toEqual(costs)
    expect(read({ usage: { prompt_tokens: 8 } })).toEqual(costs)
  })

  it('the last usage with a number is used', () => {
    const none = '{"usage":null}'
    const costs = { tokens: 43, inputTokens: 3, outputTokens: 40 }
    expect(read(bytes(`${none}${OPENAI}${none}`))).toEqual(costs)
    const long = 'text '.repeat(1_000)
    expect(read(bytes(`${long}"input_tokens":3 "usage":{"output_tokens":40}`))).toEqual(costs)
  })

  it('token counts written by the model are ignored', () => {
    const said = JSON.stringify({ content: '"total_tokens": 5, "prompt_tokens": 5' })
    expect(read(bytes(said))).toBeUndefined()
  })

  it('usage is known although the reader has transferred the chunks', () => {
    for (const size of [10, 5_000, 20_000]) {
      const reader = new UsageReader()
      for (let each = 0; each < 5; each++) {
        const chunk = bytes(`${'x'.repeat(size)}${OPENAI}}`)
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
    expect(read({ usage: null }, null, 5)).toBeUndefined()
  })
})
