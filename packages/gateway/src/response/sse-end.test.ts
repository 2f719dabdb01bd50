import { describe, expect, it } from 'vitest'
import { PROTOCOLS } from '../protocols/index.js'
import { SseEnd } from './sse-end.js'

type Name = keyof typeof PROTOCOLS

function isCutOff(protocol: Name, pieces: readonly string[]): boolean {
  const end = new SseEnd()
  for (const piece of pieces) end.push(Buffer.from(piece))
  return end.isCutOff(PROTOCOLS[protocol])
}

const CHOICE = 'data: {"choices":[{"delta":{}}]}\n\n'
const LAST_CHOICE = 'data: {"choices":[{"finish_reason":"stop"}]}\n\n'
const DELTA = 'event: x\ndata: {"type":"content_block_delta"}\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

describe('end of an event stream', () => {
  it.each<[Name, string, boolean, string]>([
    ['openai', 'without its last event', true, CHOICE],
    ['openai', 'with [DONE]', false, `${CHOICE}data: [DONE]\n\n`],
    ['openai', 'with [DONE] and no empty line after it', false, `${CHOICE}data:[DONE]\n`],
    ['openai', 'with a finish reason', false, CHOICE.repeat(3) + LAST_CHOICE],
    [
      'openai',
      'with an empty finish reason',
      true,
      CHOICE.replace('delta":{}', 'finish_reason":""'),
    ],
    ['openai', 'with an error', false, `${CHOICE}data: {"error":{"message":"x"}}\n\n`],
    ['openai', 'in the middle of a response', true, 'data: {"type":"response.created"}\n\n'],
    ['openai', 'of a response that failed', false, 'data: {"type":"response.failed"}\n\n'],
    ['openai', 'of a protocol that is not known', false, 'data: {"text":"hi"}\n\n'],
    ['anthropic', 'in the middle of a message', true, DELTA],
    ['anthropic', 'with the end of its message', false, DELTA + STOP],
    ['anthropic', 'with an error', false, `${DELTA}data: {"type":"error"}\n\n`],
    ['http', 'with any whole event', false, CHOICE],
    ['http', 'inside an event', true, 'data: {"a":'],
    ['http', 'with a whole event and no empty line', false, 'data: {"a":1}\n'],
    ['http', 'with a comment', false, 'data: 1\n\n: ping'],
    ['http', 'without any event', false, ''],
  ])('a stream of %s that ends %s is cut off: %s', (protocol, _, expected, text) => {
    expect(isCutOff(protocol, [text])).toBe(expected)
    expect(isCutOff(protocol, [...text])).toBe(expected)
  })

  it.each([1, 1_000, 4_095, 4_096, 4_097, 5_000, 9_000])(
    'the last event decides after pieces of %d bytes',
    (size) => {
      const piece = `: ${'x'.repeat(Math.max(0, size - 4))}\n\n`
      const before = Array.from({ length: Math.ceil(20_000 / size) }, () => piece)
      expect(isCutOff('openai', [CHOICE, ...before, LAST_CHOICE])).toBe(false)
      expect(isCutOff('openai', [LAST_CHOICE, ...before, CHOICE])).toBe(true)
    },
  )

  it('an event is found across the border of two pieces after much other data', () => {
    const much = ': much\n\n'.repeat(2_000)
    const [one, two] = [LAST_CHOICE.slice(0, 20), LAST_CHOICE.slice(20)]
    expect(isCutOff('openai', [much, CHOICE, one, two])).toBe(false)
    expect(isCutOff('openai', [much, CHOICE, one])).toBe(true)
  })
})
