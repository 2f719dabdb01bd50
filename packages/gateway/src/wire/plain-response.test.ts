import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { PlainResponse } from './plain-response.js'

function answer() {
  const socket = new FakeSocket()
  socket.on('error', () => {})
  const told: string[] = []
  const response = new PlainResponse(socket.asSocket, {
    keepAlive: 'Connection: keep-alive\r\n',
    onAnswered: (keepsAlive) => told.push(keepsAlive ? 'stays' : 'goes'),
  })
  for (const event of ['drain', 'finish', 'close'] as const) {
    response.on(event, () => told.push(event))
  }
  return { socket, response, told }
}

describe('PlainResponse', () => {
  it('a small answer is sent in one write, followed by its finish and close events', async () => {
    const { socket, response, told } = answer()
    response.writeHead(200, ['date', 'now', 'content-length', '5'])
    response.end('hello')
    expect([socket.writes, told]).toEqual([1, []])
    expect(socket.said).toBe(
      'HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 5\r\nConnection: keep-alive\r\n\r\nhello',
    )
    await turns()
    expect(told).toEqual(['finish', 'close', 'stays'])
    expect(response).toMatchObject({ writableFinished: true, destroyed: true, socket: null })
  })

  it('an answer without a length is sent in chunks whose sizes are counted in bytes', async () => {
    const { socket, response } = answer()
    response.writeHead(200, { date: 'now', 'x-two': ['a', 'b'], 'x-none': undefined })
    response.write('caf\u00e9')
    response.write('')
    response.write(Buffer.alloc(20_000, 'x'))
    response.end()
    const [head, ...chunks] = socket.said.split('\r\n\r\n')
    expect(head?.split('\r\n').slice(2)).toEqual([
      'x-two: a',
      'x-two: b',
      'Connection: keep-alive',
      'Transfer-Encoding: chunked',
    ])
    const body = chunks.join('\r\n\r\n')
    expect(body).toBe(`5\r\ncaf\xc3\xa9\r\n4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`)
  })

  it.each([204, 304])('an answer with status %i has no body, whatever is written', (status) => {
    const { socket, response } = answer()
    response.writeHead(status, { date: 'now' })
    response.end('not to be')
    expect(socket.said).toMatch(/^HTTP\/1.1 \d+ .*\r\ndate: now\r\nConnection: keep-alive\r\n\r\n$/)
  })

  it('an answer with Connection: close is the last one on its connection', async () => {
    const { response, told } = answer()
    response.writeHead(400, { connection: 'close', 'content-length': '0' })
    response.end()
    await turns()
    expect(told.at(-1)).toBe('goes')
  })

  it.each([
    ['a value', { 'x-a': 'b\r\nset-cookie: c' }],
    ['a value with a lone line feed', { 'x-a': 'b\nc' }],
    ['a name', { 'x-a: b\r\nx-c': 'd' }],
    ['a list', { 'x-a': ['b', 'c\rd'] }],
  ])('an answer rejects an injected header in %s', (_, headers) => {
    const { socket, response } = answer()
    expect(() => response.writeHead(200, headers)).toThrow(TypeError)
    expect(response.headersSent).toBe(false)
    // Another answer can still be sent instead.
    response.writeHead(500, { 'content-length': '0' })
    response.end()
    expect(socket.said).toMatch(/^HTTP\/1.1 500 /)
  })

  it('passHead() validates the headers of the gateway and passes vendor headers on as they were read', () => {
    const { socket, response } = answer()
    const lines = ['x-ours', 'a\r\nx-b: c', 'date', 'now']
    expect(() => response.passHead(200, lines, 2)).toThrow(TypeError)
    response.passHead(204, ['x-ours', 'a', 'date', 'now', 'x-theirs', 'caf\xe9'], 2)
    response.end()
    expect(socket.said).toContain('\r\nx-ours: a\r\ndate: now\r\nx-theirs: caf\xe9\r\n')
  })

  it('an answer that could not be sent does not count as answered', async () => {
    const { socket, response, told } = answer()
    socket.failure = new Error('EPIPE')
    response.writeHead(200, { 'content-length': '5' })
    response.end('hello')
    await turns()
    expect(told).toEqual([])
    expect(response.writableFinished).toBe(false)
    expect(socket.destroyed).toBe(true)
  })

  it('an answer writes nothing to a connection that is about to end', async () => {
    const { socket, response, told } = answer()
    response.writeHead(200, {})
    response.write('one')
    socket.held = []
    response.write('two')
    socket.end()
    const { said } = socket
    expect(response.write('three')).toBe(false)
    response.end('four')
    // Data written before is still sent.
    for (const letGo of socket.held) letGo()
    socket.held = undefined
    await turns()
    expect([socket.said, socket.errored]).toEqual([said, null])
    expect(told).toEqual([])
  })

  it('an answer emits drain once when a full socket buffer has drained', () => {
    const { socket, response, told } = answer()
    socket.held = []
    response.writeHead(200, {})
    response.drained()
    expect(told).toEqual([])
    expect(response.write(Buffer.alloc(100_000))).toBe(false)
    response.drained()
    response.drained()
    expect(told).toEqual(['drain'])
  })
})
