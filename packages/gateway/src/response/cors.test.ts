import { expect, it } from 'vitest'
import { answerPreflight, corsHeaders } from './cors.js'

const CORS = { origins: ['https://app.example'], maxAgeMs: 90_500 }
const ORIGIN = { origin: 'https://app.example' }

it.each(['content-type', 'authorization, x-api-key', 'a ,b'])(
  'a preflight that asks for the headers "%s" may send them',
  (wanted) => {
    const { headers } = answerPreflight(CORS, {
      ...ORIGIN,
      'access-control-request-headers': wanted,
    })
    expect(headers['access-control-allow-headers']).toBe(wanted)
  },
)

it.each(['', 'a b', 'a,,b', 'a\r\nset-cookie: b'])(
  'a preflight that asks for the invalid headers %j gets no permission for them',
  (wanted) => {
    const { headers } = answerPreflight(CORS, {
      ...ORIGIN,
      'access-control-request-headers': wanted,
    })
    expect(headers).not.toHaveProperty('access-control-allow-headers')
  },
)

it('answers to an allowed origin vary by origin, and others have no CORS headers', () => {
  expect(corsHeaders(CORS, ORIGIN)).toEqual(
    expect.arrayContaining([
      'access-control-allow-origin',
      'https://app.example',
      'vary',
      'origin',
    ]),
  )
  expect(corsHeaders(CORS, { origin: 'https://other.example' })).toEqual([])
  expect(() => answerPreflight(CORS, { origin: 'https://other.example' })).toThrow('cors.origins')
})
