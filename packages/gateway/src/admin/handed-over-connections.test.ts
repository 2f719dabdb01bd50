import { createServer, type ServerResponse } from 'node:http'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { HandedOverConnections } from './handed-over-connections.js'
import { ADMIN_SERVER_OPTIONS } from './hardening.js'

const GET = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'

function setUp({ maxConnections = 2 } = {}) {
  const clock = createVirtualClock()
  const responses: ServerResponse[] = []
  const server = createServer(ADMIN_SERVER_OPTIONS, (_, response) => responses.push(response))
  server.maxConnections = maxConnections
  const connections = new HandedOverConnections(server, clock)
  return {
    clock,
    responses,
    connections,
    async connect(sent = '') {
      const socket = new FakeSocket()
      connections.serve(socket.asSocket)
      if (sent !== '') socket.push(sent)
      await turns(3)
      return socket
    },
  }
}

describe('connections to the admin port that a supervisor hands over', () => {
  it('a connection beyond the limit is closed, and one that ends makes room', async () => {
    const { connect } = setUp()
    const [first, second, third] = [await connect(), await connect(), await connect()]
    expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, false, true])
    first.destroy()
    await turns()
    expect((await connect()).destroyed).toBe(false)
  })

  it('a connection whose first headers do not arrive in 5 s is closed', async () => {
    const { clock, connect } = setUp()
    const socket = await connect('GET / HTTP/1.1\r\nho')
    await clock.advance(4_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  it('a connection whose next headers are late is closed', async () => {
    const { clock, connect, responses } = setUp()
    const socket = await connect(GET)
    responses[0]?.end('x')
    await turns(3)
    expect(socket.output).toContain('200 OK')
    socket.push('GET / HT')
    await clock.advance(9_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  it('a connection whose body does not arrive in 10 s is closed', async () => {
    const { clock, connect } = setUp()
    const head = 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{'
    const socket = await connect(head)
    await clock.advance(9_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  it('an answer may take any time, until the server closes', async () => {
    const { clock, connect, connections } = setUp()
    const socket = await connect(GET)
    await clock.advance(3_600_000)
    expect(socket.destroyed).toBe(false)
    connections.close()
    expect(socket.destroyed).toBe(true)
  })

  it('a connection that arrives after the server was closed is not taken', () => {
    const { connections } = setUp()
    connections.close()
    expect(connections.serve(new FakeSocket().asSocket)).toBe(false)
  })
})
