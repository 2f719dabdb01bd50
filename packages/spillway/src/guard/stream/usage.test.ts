import { describe, expect, it } from 'vitest'
import { UsageReader } from './usage.js'

function read(...chunks: unknown[]) {
  const reader = new UsageReader()
  for (const chunk of chunks) reader.push(chunk)
  return reader.read()
}

const bytes = (text: string) => new TextEncoder().encode(text)
const OPENAI = '"usage":{"prompt_tokens":3,"completion_tokens":40,"total_tokens":43}'

describe('the usage in an answer', () => {
  it('is nothing if the answer does not say', () => {
    expect(read()).toBeUndefined()
    expect(read(bytes('{"choices":[]}'))).toBeUndefined()
  })

  it('may be in pieces, and after a large one', () => {
    const costs = { tokens: 43, inputTokens: 3, outputTokens: 40 }
    expect(
      read(bytes('x'.repeat(70_000)), bytes(OPENAI.slice(0, 30)), bytes(OPENAI.slice(30))),
    ).toEqual(costs)
    expect(read(...[...OPENAI].map(bytes))).toEqual(costs)
    expect(read(OPENAI)).toEqual(costs)
  })

  it('begins at one end and ends at the other, with a long answer between', () => {
    const start = bytes('{"usage":{"input_tokens":25,"output_tokens":1}}')
    const end = bytes('{"usage":{"output_tokens":90}}')
    const between = Array.from({ length: 50 }, () => bytes('text '.repeat(400)))
    expect(read(start, ...between, end)).toEqual({ tokens: 115, inputTokens: 25, outputTokens: 90 })
  })

  it('is not half of what it was: without a word at its end what was booked stays', () => {
    const start = bytes('{"usage":{"input_tokens":25,"output_tokens":1}}')
    expect(read(start, bytes(`${'text '.repeat(4_000)}}`))).toBeUndefined()
  })

  it.each(['"max_tokens":5', '"max_output_tokens":null'])(
    'is not the input alone, when a long answer ends with %s',
    (last) => {
      const early = bytes('{"usage":{"input_tokens":25,"output_tokens":900},"text":"')
      expect(read(early, bytes('x'.repeat(20_000)), bytes(`",${last}}`))).toBeUndefined()
    },
  )

  it('has no sum while one half of it is unknown', () => {
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

  it('is its input, where nothing is put out', () => {
    const costs = { tokens: 8, inputTokens: 8 }
    const long = bytes('x'.repeat(20_000))
    expect(read(long, bytes('{"usage":{"prompt_tokens":8}}'))).toEqual(costs)
    expect(read({ usage: { prompt_tokens: 8 } })).toEqual(costs)
  })

  it('is the last that says a number, wherever that is', () => {
    const none = '{"usage":null}'
    const costs = { tokens: 43, inputTokens: 3, outputTokens: 40 }
    expect(read(bytes(`${none}${OPENAI}${none}`))).toEqual(costs)
    const long = 'text '.repeat(1_000)
    expect(read(bytes(`${long}"input_tokens":3 "usage":{"output_tokens":40}`))).toEqual(costs)
  })

  it('is not what the model wrote about tokens', () => {
    const said = JSON.stringify({ content: '"total_tokens": 5, "prompt_tokens": 5' })
    expect(read(bytes(said))).toBeUndefined()
  })

  it('is unknown of chunks that their reader has passed on for good', () => {
    for (const size of [10, 5_000, 20_000]) {
      const reader = new UsageReader()
      for (let each = 0; each < 5; each++) {
        const chunk = bytes(`${'x'.repeat(size)}${OPENAI}}`)
        reader.push(chunk)
        structuredClone(chunk, { transfer: [chunk.buffer] })
      }
      expect(reader.read()).toBeUndefined()
    }
  })

  it('is unknown of an object that cannot be asked', () => {
    const hostile = {
      get usage() {
        throw new Error('no')
      },
    }
    expect(read(hostile, { usage: { input_tokens: 1n } })).toBeUndefined()
  })

  it('is read from objects, as an SDK yields them', () => {
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
