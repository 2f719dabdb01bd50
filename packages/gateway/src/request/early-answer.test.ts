import { expect, it } from 'vitest'
import type { ClientRequest } from './client-http.js'
import { hasMuchToSend } from './early-answer.js'

const asks = (headers: Record<string, string>, complete = false) =>
  hasMuchToSend({ headers, complete } as unknown as ClientRequest)

it('a connection ends with an early answer if more than 64 KiB of the body may follow', () => {
  expect(asks({ 'content-length': '65537' })).toBe(true)
  expect(asks({ 'transfer-encoding': 'chunked' })).toBe(true)
})

it('a connection stays open after an early answer if little of the body or nothing follows', () => {
  expect(asks({ 'content-length': '65536' })).toBe(false)
  expect(asks({})).toBe(false)
  expect(asks({ 'content-length': '65537' }, true)).toBe(false)
})
