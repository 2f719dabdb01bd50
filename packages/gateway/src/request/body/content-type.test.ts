import { describe, expect, it } from 'vitest'
import { isJsonType, parseContentType } from './content-type.js'

describe('Content-Type', () => {
  it.each([
    ['application/json', 'application/json', undefined],
    [' Application/JSON ; Charset=UTF-8', 'application/json', 'utf-8'],
    ['text/plain;charset="utf-8"', 'text/plain', 'utf-8'],
    ['text/plain;charset="ut\\f-8"', 'text/plain', 'utf-8'],
    ['text/plain; a=b; charset=latin1; c=d', 'text/plain', 'latin1'],
    ['multipart/form-data; boundary="x;y"', 'multipart/form-data', undefined],
    ['text/plain;', 'text/plain', undefined],
    ['text/plain; ; a=1', 'text/plain', undefined],
    ['application/vnd.api+json', 'application/vnd.api+json', undefined],
  ])('%j has the type %s and the charset %s', (header, mediaType, charset) => {
    expect(parseContentType(header)).toEqual({ mediaType, charset })
  })

  it.each([
    '',
    'json',
    'application/',
    'application/json charset=utf-8',
    'application/json, text/plain',
    'text/plain; charset=utf-8; charset=utf-16',
    'text/plain; charset=utf-8; charset="utf-8"',
    "text/plain; charset*=utf-8''x",
    'text/plain; charset =utf-16',
    'text/plain; x="charset=utf-16"',
    'text/plain; a="b',
  ])('%j is malformed', (header) => {
    expect(parseContentType(header)).toBeUndefined()
  })

  it('JSON types are application/json, text/json and those with the suffix +json', () => {
    const types = ['application/json', 'text/json', 'application/problem+json']
    expect(types.map(isJsonType)).toEqual([true, true, true])
    const others = ['text/plain', 'application/json5', 'application/x+json5', 'application/jsonl']
    expect(others.map(isJsonType)).toEqual([false, false, false, false])
  })
})
