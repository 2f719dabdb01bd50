import { describe, expect, it } from 'vitest'
import { containsKey, maskedName, maskedPath, requestIdFor, uniqueId } from './privacy.js'

const HEX = '0123456789abcdef0123456789abcdef'

describe('names and paths in logs', () => {
  it.each(['gpt-4', 'claude-3.5:beta', 'a'.repeat(200), ''])('the name %s is shown', (name) => {
    expect([maskedName(name), maskedName(name)]).toEqual([name, name])
  })

  it.each(['two words', 'caf\u00e9', 'a'.repeat(201), 'sk-proj-abcdef123', HEX, 'line\nbreak'])(
    'the name %j is masked',
    (name) => {
      expect([maskedName(name), maskedName(name)]).toEqual(['***', '***'])
    },
  )

  it.each([
    ['/v1/chat', '/v1/chat'],
    ['/v1/files/sk-proj-abcdef123/x', '/v1/files/***/x'],
    ['/a/sk-abcdefgh/sk-12345678', '/a/***/***'],
    ['/v1/a%20secret', '/v1/a…'],
    ['/caf\u00e9', '/caf?'],
    [`/${'a'.repeat(199)}`, `/${'a'.repeat(199)}`],
    [`/${'a-'.repeat(200)}`, `/${'a-'.repeat(99)}a…`],
    ['http://user:password@host/', '***'],
  ])('the path %s is shown as %s', (path, shown) => {
    expect([maskedPath(path), maskedPath(path)]).toEqual([shown, shown])
  })

  it('a text holds the key of its request if it contains it and the key has 8 characters', () => {
    expect(containsKey('id-12345678', '12345678')).toBe(true)
    expect(containsKey('id-1234567', '1234567')).toBe(false)
    expect(containsKey('id', '12345678')).toBe(false)
    expect(containsKey(undefined, '12345678')).toBe(false)
  })
})

describe('request ids', () => {
  it.each(['abc-1.2:3_4', HEX, 'a'.repeat(30)])('the id %s of the client is kept', (id) => {
    expect(requestIdFor({ 'x-request-id': id })).toBe(id)
  })

  it.each([
    [{ 'x-request-id': '' }],
    [{ 'x-request-id': 'a b' }],
    [{ 'x-request-id': 'a'.repeat(129) }],
    [{ 'x-request-id': 'sk-proj-abcdef123' }],
    [{ 'x-request-id': 'my-key', 'x-api-key': 'my-key' }],
    [{ 'x-request-id': 'my-key', authorization: 'Bearer my-key' }],
    [{}],
  ])('the gateway makes an id for a request with the headers %j', (headers) => {
    const id = requestIdFor(headers)
    expect(id).not.toBe((headers as Record<string, string>)['x-request-id'])
    // The first character is no dash, so `spillway explain <id>` does not read the id as an option.
    expect(id).toMatch(/^[0-9a-f]{24}-[0-9a-z]+$/)
    expect(requestIdFor({ 'x-request-id': id })).toBe(id)
  })

  it('ids that the gateway makes are unique', () => {
    expect(new Set(Array.from({ length: 100 }, uniqueId)).size).toBe(100)
  })
})
