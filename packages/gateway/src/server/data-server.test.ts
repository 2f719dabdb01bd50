import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { statusesIn } from '../../test/security/raw.js'
import { loadConfig } from '../config/load.js'
import type { RequestRecord } from '../request/record.js'
import type { ConfigVersions } from '../routing/config-versions.js'
import { DataServer } from './data-server.js'

const TEXT = JSON.stringify({
  vendors: { openai: { protocol: 'openai', url: 'mock' } },
  server: { headersMs: '5s' },
})

/** Health checks are answered; no other request reaches this server. */
function setUp() {
  const clock = createVirtualClock()
  const config = loadConfig({ file: 'test.yaml', text: TEXT, env: {} })
  const records: RequestRecord[] = []
  const hooks = { onRecord: (record: RequestRecord) => records.push(record) }
  const versions = { current: { config, hooks } } as unknown as ConfigVersions
  const server = new DataServer(versions, () => ({ status: 200, body: '{}' }), clock)
  onTestFinished(() => server.close())
  return {
    clock,
    records,
    server,
    async connect(sent: string) {
      const socket = new FakeSocket()
      server.serve(socket.asSocket, false)
      socket.push(sent)
      await turns(2)
      return socket
    },
  }
}

const POST = 'POST /health/live HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'

describe('time limits of the data port', () => {
  it('headers that are not complete within headersMs are answered with 408', async () => {
    const { clock, records, connect } = setUp()
    const socket = await connect('GET / HTTP/1.1\r\nHost')
    await clock.advance(5_000)
    expect(socket.output).toBe('')
    await clock.advance(1_000)
    expect(statusesIn(socket.output)).toEqual([408])
    expect(records.map(({ code }) => code)).toEqual(['SLOW_HEADERS'])
  })

  it('a client that sends the rest of an answered body slowly is disconnected without a 408', async () => {
    const { clock, records, connect } = setUp()
    const socket = await connect(`${POST}01234`)
    expect(statusesIn(socket.output)).toEqual([200])
    socket.push('5')
    await turns(2)
    await clock.advance(10_000)
    expect(statusesIn(socket.output)).toEqual([200])
    expect([socket.destroyed, records]).toEqual([true, []])
  })

  it('a server that is being drained takes only connections that are the last ones', async () => {
    const { server } = setUp()
    await server.drain()
    const serves = (isLast: boolean) => server.serve(new FakeSocket().asSocket, isLast)
    expect([serves(false), serves(true)]).toEqual([false, true])
    await server.close()
    expect(serves(true)).toBe(false)
  })

  it('closing the server leaves a client a second to read the last answer of a connection that lingers', async () => {
    const { clock, server, connect } = setUp()
    const [lingering, idle] = [await connect(''), await connect('')]
    lingering.end('the last answer')
    await server.close()
    expect([lingering.destroyed, idle.destroyed]).toEqual([false, true])
    await clock.advance(1_000)
    expect(lingering.destroyed).toBe(true)
  })
})
