// test-group: io

/** A stream may end cleanly, as far as HTTP can tell, and not be all of the answer. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAll, until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'

/** Says these pieces, one by one, and ends. */
async function startSpeaker(pieces: readonly string[]): Promise<string> {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of pieces) {
      response.write(piece)
      await nextTurn()
    }
    response.end()
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

type Way = 'chat' | 'messages'

async function through(way: Way, pieces: readonly string[]) {
  const url = await startSpeaker(pieces)
  const running = await startGateway({ guard: { url } })
  const answer = await running[way]({ stream: true })
  const { chunks, error } = await readAll(answer.body!)
  await until('it is recorded', () => running.records.length === 1)
  const { end, code } = running.records[0]!
  const { outcomes } = running.gateway.spillway
    .snapshot()
    .guards.find(({ name }) => name === (way === 'chat' ? 'openai' : 'anthropic'))!
  const text = Buffer.concat(chunks).toString()
  return { status: answer.status, text, broken: error !== undefined, end, code, outcomes }
}

const chunk = (content: string, finish: string | null = null) =>
  `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"finish_reason":${JSON.stringify(finish)}}]}\n\n`
const event = (type: string, more = '') => `event: ${type}\ndata: {"type":"${type}"${more}}\n\n`

const DONE = 'data: [DONE]\n\n'
const STOP = chunk('', 'stop')
const USAGE = 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n'
const ERROR = 'data: {"error":{"message":"too much","code":500}}\n\n'

describe.each<[Way, string, string[]]>([
  ['chat', 'in the middle of an event', [chunk('a'), chunk('b'), 'data: {"id":"c","obj']],
  ['chat', 'behind its name', [chunk('a'), STOP, 'data: [DO']],
  ['chat', 'between two events', [chunk('a'), chunk('b')]],
  ['chat', 'with a text about endings', [chunk('"finish_reason": "stop"\n\ndata: [DONE]\n\n')]],
  ['chat', 'with events that run together', [chunk('a'), chunk('b').trimEnd(), '\n', chunk('c')]],
  ['chat', 'with a reason that is none', [chunk('a', ''), chunk('b', '')]],
  ['chat', 'of a response', [event('response.created'), event('response.output_text.delta')]],
  ['messages', 'in the middle of an event', [event('message_start'), 'event: content_bl']],
  ['messages', 'between two events', [event('message_start'), event('content_block_delta')]],
  ['messages', 'after a sign of life', [event('message_start'), event('ping')]],
])('%s: a stream that ends %s', (way, _, pieces) => {
  it('is broken off with an error event, and counts as a failure of the vendor', async () => {
    const { text, broken, end, code, outcomes } = await through(way, pieces)
    expect({ broken, end, code, failures: outcomes.failure }).toEqual({
      broken: true,
      end: 'truncated',
      code: 'VENDOR_ERROR',
      failures: 1,
    })
    expect(text).toMatch(/STREAM_CUT_OFF.*\n\n$/)
    // What was whole has been passed on, and nothing else.
    const events = text.split('\n\n').slice(0, -2)
    for (const each of events) expect(pieces.join('')).toContain(each)
  })
})

describe.each<[Way, string, string[]]>([
  ['chat', 'with its last word', [chunk('a'), STOP, USAGE, DONE]],
  ['chat', 'with its last word alone', [chunk('a'), DONE]],
  ['chat', 'without it, but finished', [chunk('a'), STOP]],
  ['chat', 'without it, and with what it cost', [chunk('a'), STOP, USAGE]],
  ['chat', 'without the last empty line', [chunk('a'), STOP, 'data: [DONE]']],
  ['chat', 'without the last line break', [chunk('a'), STOP, DONE.trimEnd()]],
  ['chat', 'without an empty line behind the finish', [chunk('a'), STOP.trimEnd()]],
  ['chat', 'with lines of the other kind', [chunk('a'), STOP, DONE].map(carriageReturns)],
  ['chat', 'in an error of its own', [chunk('a'), ERROR]],
  ['chat', 'with a blank behind its last word', [chunk('a'), 'data: [DONE] ']],
  ['chat', 'with comments alone', [': PROCESSING\n\n']],
  ['chat', 'with a comment', [chunk('a'), STOP, DONE, ': bye\n\n']],
  ['chat', 'as a response', [event('response.created'), event('response.completed')]],
  [
    'chat',
    'as a response that is too long',
    [event('response.created'), event('response.incomplete')],
  ],
  [
    'chat',
    'with a long last event',
    [chunk('a'), event('response.completed', `,"x":"${'x'.repeat(99_999)}"`)],
  ],
  ['chat', 'with events nobody knows', ['data: {"type":"speech.audio.delta"}\n\n']],
  [
    'messages',
    'with its last word',
    [event('message_start'), event('message_delta'), event('message_stop')],
  ],
  [
    'messages',
    'as completions did before there were messages',
    [
      event('completion', ',"completion":"a","stop_reason":null'),
      event('ping'),
      event('completion', ',"completion":"","stop_reason":"stop_sequence"'),
    ],
  ],
  ['messages', 'in an error of its own', [event('message_start'), event('error')]],
])('%s: a stream that ends %s', (way, _, pieces) => {
  it('is passed on as it came', async () => {
    const { text, broken, end } = await through(way, pieces)
    expect({ text, broken, end }).toEqual({ text: pieces.join(''), broken: false, end: 'complete' })
  })
})

describe('a stream without a single event', () => {
  it.each<Way>(['chat', 'messages'])('is a 502 to %s, and a failure of the vendor', async (way) => {
    const { status, code, outcomes } = await through(way, [])
    expect({ status, code }).toEqual({ status: 502, code: 'VENDOR_ERROR' })
    expect(outcomes).toMatchObject({ failure: 1, success: 0 })
  })

  it('makes way for the next target', async () => {
    const [silent, speaker] = [await startSpeaker([]), await startSpeaker([STOP, DONE])]
    const running = await startGateway({
      vendors: {
        silent: { protocol: 'openai', url: silent },
        other: { protocol: 'openai', url: speaker },
      },
      routes: [{ path: '/v1/*', vendor: 'silent', fallbacks: [{ vendor: 'other' }] }],
    })
    const answer = await running.chat({ stream: true })
    expect(await answer.text()).toBe(STOP + DONE)
    expect(answer.headers.get('spillway-vendor')).toBe('other')
  })

  it.each(['HEAD', 'GET'])('is as good as any answer to a %s', async (method) => {
    const url = await startSpeaker([])
    const running = await startGateway({
      guard: { url },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
    })
    const answer = await fetch(`${running.url}/v1/responses/x`, { method })
    expect(answer.status).toBe(200)
    await until('it is recorded', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ code: undefined, end: 'complete' })
  })
})

function carriageReturns(text: string): string {
  return text.replaceAll('\n', '\r\n')
}
