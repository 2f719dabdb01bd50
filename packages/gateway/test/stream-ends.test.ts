// test-group: sockets

/** A stream may end cleanly in HTTP and still be an incomplete answer. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAll, until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'

/** Sends these chunks separately and ends. */
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

type Way = 'chat' | 'messages' | 'generate'

const GUARDS = { chat: 'openai', messages: 'anthropic', generate: 'gemini' }
const GENERATE = '/v1beta/models/m:streamGenerateContent?alt=sse'

async function through(way: Way, pieces: readonly string[]) {
  const url = await startSpeaker(pieces)
  const isGemini = way === 'generate'
  const vendors = { gemini: { protocol: 'gemini', url } }
  const running = await startGateway(isGemini ? { vendors } : { guard: { url } })
  const body = JSON.stringify({ contents: [] })
  const answer = await (isGemini
    ? fetch(running.url + GENERATE, { method: 'POST', body })
    : running[way]({ stream: true }))
  const { chunks, error } = await readAll(answer.body!)
  await until('it is recorded', () => running.records.length === 1)
  const { end, code } = running.records[0]!
  const { outcomes } = running.gateway.spillway
    .snapshot()
    .guards.find(({ name }) => name === GUARDS[way])!
  const text = Buffer.concat(chunks).toString()
  return { status: answer.status, text, broken: error !== undefined, end, code, outcomes }
}

const chunk = (content: string, finish: string | null = null) =>
  `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"finish_reason":${JSON.stringify(finish)}}]}\n\n`
const event = (type: string, more = '') => `event: ${type}\ndata: {"type":"${type}"${more}}\n\n`

const candidate = (text: string, more = '') =>
  `data: {"candidates":[{"content":{"parts":[{"text":${JSON.stringify(text)}}]}${more}}]}\r\n\r\n`
const FINISHED = candidate('', ',"finishReason":"STOP"')

const DONE = 'data: [DONE]\n\n'
const STOP = chunk('', 'stop')
const USAGE = 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n'
const ERROR = 'data: {"error":{"message":"too much","code":500}}\n\n'

describe.each<[Way, string, string[]]>([
  ['chat', 'in the middle of an event', [chunk('a'), chunk('b'), 'data: {"id":"c","obj']],
  ['chat', 'in the middle of [DONE]', [chunk('a'), STOP, 'data: [DO']],
  ['chat', 'between two events', [chunk('a'), chunk('b')]],
  [
    'chat',
    'with text that looks like an end',
    [chunk('"finish_reason": "stop"\n\ndata: [DONE]\n\n')],
  ],
  ['chat', 'with merged events', [chunk('a'), chunk('b').trimEnd(), '\n', chunk('c')]],
  ['chat', 'with an empty finish reason', [chunk('a', ''), chunk('b', '')]],
  [
    'chat',
    'in the middle of a response',
    [event('response.created'), event('response.output_text.delta')],
  ],
  ['messages', 'in the middle of an event', [event('message_start'), 'event: content_bl']],
  ['messages', 'between two events', [event('message_start'), event('content_block_delta')]],
  ['messages', 'after a ping', [event('message_start'), event('ping')]],
  ['generate', 'between two events', [candidate('a'), candidate('b')]],
  ['generate', 'with text that looks like an end', [candidate('"finishReason":"STOP"')]],
  ['generate', 'in the middle of an event', [candidate('a'), FINISHED.slice(0, 40)]],
])('%s: an incomplete stream that ends %s', (way, _, pieces) => {
  it('an incomplete stream ends with an error event and counts as a vendor failure', async () => {
    const { text, broken, end, code, outcomes } = await through(way, pieces)
    expect({ broken, end, code, failures: outcomes.failure }).toEqual({
      // Google's SDK recognises an error only in a separate chunk.
      broken: way === 'generate',
      end: 'truncated',
      code: 'VENDOR_ERROR',
      failures: 1,
    })
    expect(text).toMatch(/STREAM_CUT_OFF.*\n\n$/)
    // Only complete events were passed on.
    const events = text.split(/\r?\n\r?\n/).slice(0, -2)
    for (const each of events) expect(pieces.join('')).toContain(each)
  })
})

describe.each<[Way, string, string[]]>([
  ['chat', 'with its final event', [chunk('a'), STOP, USAGE, DONE]],
  ['chat', 'with [DONE] alone', [chunk('a'), DONE]],
  ['chat', 'with a finish reason only', [chunk('a'), STOP]],
  ['chat', 'with finish reason and usage', [chunk('a'), STOP, USAGE]],
  ['chat', 'without the last empty line', [chunk('a'), STOP, 'data: [DONE]']],
  ['chat', 'without the last line break', [chunk('a'), STOP, DONE.trimEnd()]],
  ['chat', 'without an empty line after the finish reason', [chunk('a'), STOP.trimEnd()]],
  ['chat', 'with carriage returns', [chunk('a'), STOP, DONE].map(carriageReturns)],
  ['chat', 'with an error event', [chunk('a'), ERROR]],
  ['chat', 'with a blank after [DONE]', [chunk('a'), 'data: [DONE] ']],
  ['chat', 'with comments only', [': PROCESSING\n\n']],
  ['chat', 'with a comment', [chunk('a'), STOP, DONE, ': bye\n\n']],
  ['chat', 'with a completed response', [event('response.created'), event('response.completed')]],
  [
    'chat',
    'with an incomplete response',
    [event('response.created'), event('response.incomplete')],
  ],
  [
    'chat',
    'with a long last event',
    [chunk('a'), event('response.completed', `,"x":"${'x'.repeat(99_999)}"`)],
  ],
  ['chat', 'with unknown events', ['data: {"type":"speech.audio.delta"}\n\n']],
  [
    'messages',
    'with its final event',
    [event('message_start'), event('message_delta'), event('message_stop')],
  ],
  [
    'messages',
    'with a legacy completion',
    [
      event('completion', ',"completion":"a","stop_reason":null'),
      event('ping'),
      event('completion', ',"completion":"","stop_reason":"stop_sequence"'),
    ],
  ],
  ['messages', 'with an error event', [event('message_start'), event('error')]],
  ['generate', 'with a finish reason', [candidate('a'), FINISHED]],
  ['generate', 'with a reason other than STOP', [candidate('a', ',"finishReason":"SAFETY"')]],
  ['generate', 'with a blocked prompt', ['data: {"promptFeedback":{"blockReason":"OTHER"}}\n\n']],
  ['generate', 'with an error', [candidate('a'), '{"error":{"code":503,"message":"busy"}}\n\n']],
])('%s: a complete stream that ends %s', (way, _, pieces) => {
  it('a complete stream is passed on unchanged', async () => {
    const { text, broken, end } = await through(way, pieces)
    expect({ text, broken, end }).toEqual({ text: pieces.join(''), broken: false, end: 'complete' })
  })
})

describe('stream without events', () => {
  it.each<Way>(['chat', 'messages'])('an empty stream is a 502 for %s', async (way) => {
    const { status, code, outcomes } = await through(way, [])
    expect({ status, code }).toEqual({ status: 502, code: 'VENDOR_ERROR' })
    expect(outcomes).toMatchObject({ failure: 1, success: 0 })
  })

  it('a stream without events is replaced by the next target', async () => {
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

  it.each(['HEAD', 'GET'])('a stream without events is a valid answer to a %s', async (method) => {
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
