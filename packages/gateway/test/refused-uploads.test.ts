// test-group: sockets

/** Refusals while the client still sends its body: the client reads the answer, not a reset of its connection. */
import { connect } from 'node:http2'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  CLIENTS,
  http2Client,
  rawClient,
  startRefusingGateway,
  surprises,
  withNode,
} from './refused-upload-kit.js'

describe('uploads that are refused while they are sent', () => {
  it.each(Object.entries(CLIENTS))(
    'every one of 56 uploads with %s receives its status over HTTP/1.1',
    async (_, client) => {
      const { url, failures } = await startRefusingGateway('HTTP/1.1')
      expect(await surprises(url, client, 8)).toEqual([])
      expect(failures).toEqual([])
    },
  )

  it.each([
    ['node:https', withNode],
    ['a socket that is read after the upload', rawClient({ late: true })],
  ])('every one of 28 uploads with %s receives its status over TLS', async (_, client) => {
    const { url, failures } = await startRefusingGateway('TLS')
    expect(await surprises(url, client, 4)).toEqual([])
    expect(failures).toEqual([])
  })

  it('every one of 28 uploads with a socket that is read after the upload receives its status over a Unix socket', async () => {
    const { url, failures } = await startRefusingGateway('a Unix socket')
    expect(await surprises(url, rawClient({ late: true }), 4)).toEqual([])
    expect(failures).toEqual([])
  })

  it('every one of 56 uploads on one connection of HTTP/2 receives its status', async () => {
    const { url, failures } = await startRefusingGateway('TLS')
    const session = connect(url, { rejectUnauthorized: false })
    onTestFinished(() => session.destroy())
    expect(await surprises(url, http2Client(session), 8)).toEqual([])
    expect(failures).toEqual([])
  })
})
