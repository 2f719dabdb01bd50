import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { answerRaw, faultOfParser, NO_TUNNEL } from './parser-errors.js'

describe('bytes that are no HTTP request', () => {
  it.each([
    ['HPE_HEADER_OVERFLOW', 431, 'HEADERS_TOO_LARGE'],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'SLOW_HEADERS'],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 400, 'MALFORMED_REQUEST'],
    ['HPE_INVALID_METHOD', 400, 'MALFORMED_REQUEST'],
  ])('the parser error %s is answered with %i %s', (parserCode, status, code) => {
    expect(faultOfParser(parserCode)).toMatchObject({ status, code, closes: true })
  })

  it.each(['ECONNRESET', undefined])('a connection that ended with %s gets no answer', (code) => {
    expect(faultOfParser(code)).toBeUndefined()
  })

  it('the answer is valid HTTP, closes the connection and is recorded', async () => {
    const socket = new FakeSocket()
    const record = answerRaw(socket.asSocket, NO_TUNNEL)
    await turns(2)
    const [head, body = ''] = socket.output.split('\r\n\r\n')
    const { error } = JSON.parse(body)
    expect(head?.split('\r\n')).toEqual([
      'HTTP/1.1 501 Not Implemented',
      `spillway-request-id: ${error.request_id}`,
      'spillway-decision: refused;reason=METHOD_NOT_SUPPORTED',
      'content-type: application/json',
      `content-length: ${body.length}`,
      'connection: close',
    ])
    expect(record).toMatchObject({
      id: error.request_id,
      status: 501,
      code: 'METHOD_NOT_SUPPORTED',
      attempts: 0,
    })
    expect([socket.writableEnded, socket.destroyed]).toEqual([true, false])
    socket.push(null)
    await turns(2)
    expect(socket.destroyed).toBe(true)
  })

  it('a connection that cannot be written to is closed without an answer', async () => {
    const socket = new FakeSocket()
    socket.end()
    await turns()
    answerRaw(socket.asSocket, NO_TUNNEL)
    expect([socket.output, socket.destroyed]).toEqual(['', true])
  })
})
