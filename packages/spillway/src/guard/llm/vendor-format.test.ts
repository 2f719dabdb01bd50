import { expect, it } from 'vitest'
import { pathMatches } from './vendor-format.js'

it('paths match decoded, in any case and with slashes at the end', () => {
  const pattern = /\/messages$/
  for (const path of ['/v1/messages', '/v1/MESSAGES//', '/v1%2Fmessage%73']) {
    expect(pathMatches(path, pattern)).toBe(true)
  }
  expect(pathMatches('/v1/messages/x', pattern)).toBe(false)
  expect(pathMatches('/%ff/messages', pattern)).toBe(true)
})
