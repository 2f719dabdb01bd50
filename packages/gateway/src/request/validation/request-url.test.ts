import { describe, expect, it } from 'vitest'
import { faultInLlmPath, faultInUrl } from './request-url.js'

/** `%` encoded as many times as given. */
const percent = (times: number) => `%${'25'.repeat(times)}`

describe('URLs of requests', () => {
  it.each([
    '/',
    '/v1/chat/completions',
    '/v1/chat/completions?a=b&c=d',
    '/a?b=%7Bx%7D',
    '/a?next=/../b',
    '/a.b/..c/.d',
    '/caf%C3%A9',
    '/a%20b',
    '/models/gpt%2F4',
    `/a${percent(4)}41`,
  ])('%s is accepted', (url) => {
    expect(faultInUrl(url)).toBeUndefined()
  })

  it.each([
    ['', 'begins with a single /'],
    ['http://host/a', 'begins with a single /'],
    ['*', 'begins with a single /'],
    ['//host/a', 'begins with a single /'],
    ['/\\host', 'begins with a single /'],
    ['/a b', 'character that must be encoded'],
    ['/a"b', 'character that must be encoded'],
    ['/a\u00e9', 'character that must be encoded'],
    ['/a?b c', 'character that must be encoded'],
    ['/a?b"', 'character that must be encoded'],
    ['/a#b', 'character that must be encoded'],
    ['/a%', '% without two hex digits'],
    ['/a%2', '% without two hex digits'],
    ['/a?b=%zz', '% without two hex digits'],
    ['/a?b=%00', 'must not contain a NUL'],
    ['/a%ff', 'not UTF-8'],
    ['/a%c3', 'not UTF-8'],
    ['/a%00', 'backslash or a control character'],
    ['/a%0d%0ab', 'backslash or a control character'],
    ['/a%5cb', 'backslash or a control character'],
    ['/a%255c', 'backslash or a control character'],
    ['/a%7f', 'backslash or a control character'],
    ['/a/../b', '. or .. as one of its segments'],
    ['/a/./b', '. or .. as one of its segments'],
    ['/a/..', '. or .. as one of its segments'],
    ['/..;x/b', '. or .. as one of its segments'],
    ['/a/%2e%2E/b', '. or .. as one of its segments'],
    ['/a%2f..%2fb', '. or .. as one of its segments'],
    [`/a/${percent(3)}2e${percent(3)}2e/b`, '. or .. as one of its segments'],
    [`/a${percent(5)}41`, 'encoded more than 5 times'],
  ])('%j is refused as 400: %s', (url, message) => {
    expect(faultInUrl(url)).toMatchObject({
      status: 400,
      code: 'INVALID_URL',
      closes: true,
      message: expect.stringContaining(message),
    })
  })
})

describe('paths of LLM APIs', () => {
  it.each(['/v1/chat/completions', '/v1/models/gpt-4', '/v1/Models', '/v1/files/a%20b'])(
    '%s is accepted',
    (path) => {
      expect(faultInLlmPath(path)).toBeUndefined()
    },
  )

  it.each([
    ['/v1//chat/completions', 'must not contain //'],
    ['/v1/%2Fchat/completions', 'must not contain //'],
    ['/v1/chat/completions/', 'must not end in /'],
    ['/v1/chat/completions%2F', 'must not end in /'],
    ['/v1/chat/completions;a=b', 'must not contain ;'],
    ['/v1/chat/completions%3Ba', 'must not contain ;'],
    ['/v1/Chat/Completions', '/v1/chat/completions must be written in lower case'],
    ['/v1/chat%2Fcompletions', '/v1/chat/completions must be written in lower case'],
    ['/V1/messages', '/v1/messages must be written in lower case and without escapes'],
    ['/v1/messages/COUNT_TOKENS', '/v1/messages/count_tokens must be written'],
  ])('%s is refused: %s', (path, message) => {
    expect(faultInLlmPath(path)?.message).toContain(message)
  })
})
