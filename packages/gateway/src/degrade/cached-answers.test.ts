import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import type { CachedAnswerConfig } from '../config/config.js'
import { CachedAnswers } from './cached-answers.js'

const CONFIG: CachedAnswerConfig = {
  kind: 'cached',
  on: ['error'],
  maxAgeMs: 1_000,
  shared: false,
  maxEntries: 3,
  maxBytes: 10_000,
  maxAnswerBytes: 5_000,
  ignoreFields: [],
  ignoreHeaders: ['user-agent'],
}

function create(changes: Partial<CachedAnswerConfig> = {}) {
  const clock = createVirtualClock()
  const answers = new CachedAnswers({ ...CONFIG, ...changes }, clock)
  /** Passes an answer with these chunks on; whether it can be found afterwards. */
  const keep = (
    key: string,
    chunks: string[],
    headers: Record<string, string> = {},
    status = 200,
  ): string | undefined => {
    const header = (name: string) => headers[name]
    const copy = answers.copyOf(key, { status, header } as never)
    for (const chunk of chunks) copy?.add(Buffer.from(chunk))
    copy?.complete()
    return answers.find(key)?.answer.bytes.toString()
  }
  return { clock, answers, keep }
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const EVENTS = { 'content-type': 'text/event-stream' }

describe('cached answers of a route', () => {
  it('a cached answer is found with its type and age until maxAgeMs', async () => {
    const { clock, answers, keep } = create()
    expect(keep('a', ['{"a"', ':1}'], { ...JSON_TYPE, 'x-request-id': '1' })).toBe('{"a":1}')
    await clock.advance(1_000)
    const found = answers.find('a')
    expect(found?.ageMs).toBe(1_000)
    expect(found?.answer.headers).toEqual(JSON_TYPE)
    await clock.advance(1)
    expect(answers.find('a')).toBeUndefined()
  })

  it('the newest maxEntries answers are kept', () => {
    const { answers, keep } = create()
    for (const key of 'abcd') keep(key, [key])
    expect([...'abcd'].filter((key) => answers.find(key))).toEqual(['b', 'c', 'd'])
  })

  it('all answers together take at most maxBytes', () => {
    const { answers, keep } = create({ maxEntries: 100 })
    for (const key of 'abc') keep(key, ['x'.repeat(4_000)])
    expect([...'abc'].filter((key) => answers.find(key))).toEqual(['b', 'c'])
    keep('b', ['short'])
    keep('d', ['x'.repeat(4_000)])
    expect([...'abcd'].filter((key) => answers.find(key))).toEqual(['b', 'c', 'd'])
  })

  it('an answer of more than maxAnswerBytes is not kept', () => {
    const { keep } = create()
    expect(keep('a', ['x'.repeat(3_000), 'y'.repeat(3_000)])).toBeUndefined()
  })

  it('answers that are still being sent take at most maxBytes, until their requests end', () => {
    const { answers } = create({ maxEntries: 100 })
    const response = { status: 200, header: () => undefined } as never
    const copies = ['a', 'b', 'c'].map((key) => answers.copyOf(key, response))
    for (const copy of copies) copy?.add(Buffer.alloc(4_000))
    // Together they would be 12,000 bytes, so the last one is not kept.
    for (const copy of copies) copy?.complete()
    expect(['a', 'b', 'c'].filter((key) => answers.find(key))).toEqual(['a', 'b'])
    const unfinished = ['d', 'e'].map((key) => answers.copyOf(key, response))
    for (const copy of unfinished) copy?.add(Buffer.alloc(4_500))
    for (const copy of unfinished) copy?.release()
    const last = answers.copyOf('f', response)
    last?.add(Buffer.alloc(4_000))
    last?.complete()
    expect(answers.find('f')).toBeDefined()
  })

  it('an answer that did not end is not kept', () => {
    const { answers } = create()
    const copy = answers.copyOf('a', { status: 200, header: () => undefined } as never)
    copy?.add(Buffer.from('half'))
    expect(answers.find('a')).toBeUndefined()
  })

  it.each([201, 202, 204, 206, 301, 404, 500])('an answer with status %d is not kept', (status) => {
    expect(create().keep('a', ['x'], {}, status)).toBeUndefined()
  })

  it.each<[string, Record<string, string>]>([
    ['a cookie', { 'set-cookie': 'a=1' }],
    ['no-store', { 'cache-control': 'max-age=1, No-Store' }],
    ['vary: *', { vary: 'accept, *' }],
    ['a dependence on an ignored header', { vary: 'User-Agent' }],
    ['the mark of a fallback of another gateway', { 'spillway-degraded': 'static' }],
  ])('an answer with %s is not kept', (_, headers) => {
    expect(create().keep('a', ['x'], headers)).toBeUndefined()
  })

  it('a private answer is kept for its caller only', () => {
    const headers = { 'cache-control': 'private', vary: 'origin' }
    expect(create().keep('a', ['x'], headers)).toBe('x')
    expect(create({ shared: true }).keep('a', ['x'], headers)).toBeUndefined()
  })

  it.each<[string, Record<string, string>, string]>([
    ['JSON', JSON_TYPE, '{"error":{"message":"down"}}'],
    ['a stream', EVENTS, 'data: {"choices":[]}\n\ndata: {"error":{"message":"down"}}\n\n'],
    ['a stream', EVENTS, 'event: error\r\ndata: {"type":"error"}\r\n\r\n'],
    ['a stream', EVENTS, 'data: {"type":"response.failed"}\n\n'],
  ])('an error in %s with status 200 is not kept', (_, headers, body) => {
    expect(create().keep('a', [body], headers)).toBeUndefined()
  })

  it('an answer whose text mentions errors is kept', () => {
    const body = 'data: {"choices":[{"delta":{"content":"\\"error\\""}}],"error":null}\n\n'
    expect(create().keep('a', [body], EVENTS)).toBe(body)
  })
})
