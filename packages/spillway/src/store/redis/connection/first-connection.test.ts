import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import { FirstConnection } from './first-connection.js'

function setup(url = 'redis://redis:6379') {
  const clock = createVirtualClock()
  const client: { ready: boolean; problem: unknown } = { ready: false, problem: undefined }
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const first = new FirstConnection({ client, clock, url, warn, severalServers: false })
  return { clock, client, warnings, first }
}

describe('closing a Redis store that never had a connection', () => {
  it('close() of a store whose connection failed gives the warning once', () => {
    const { first, client, warnings } = setup()
    client.problem = new Error('connect ECONNREFUSED')
    first.close()
    first.close()
    expect(warnings).toEqual([
      'the Redis store at redis://redis:6379 is unreachable: connect ECONNREFUSED. Check the url of redisStore (gateway: REDIS_URL, or redis in spillway.yaml)',
    ])
  })

  it('close() of a store that no command could reach gives the warning with the time it waited', async () => {
    const { clock, first, warnings } = setup()
    await clock.until(first.wait('brief'))
    first.close()
    expect(warnings).toEqual([expect.stringContaining('is unreachable: no connection within 1 s.')])
  })

  it('close() of a store that was never needed gives no warning', async () => {
    const { clock, first, warnings } = setup()
    await clock.advance(100)
    first.close()
    await clock.advance(10_000)
    expect(warnings).toEqual([])
  })

  it('close() of a store that had a connection gives no warning', async () => {
    const { clock, client, first, warnings } = setup()
    client.ready = true
    await clock.until(first.wait('brief'))
    client.ready = false
    client.problem = new Error('Socket closed')
    first.close()
    expect(warnings).toEqual([])
  })
})

describe('hint at redis:// for a server without TLS', () => {
  const problem = (code: string) => Object.assign(new Error(`failed: ${code}`), { code })
  const warningFor = (url: string, error: unknown) => {
    const { client, first, warnings } = setup(url)
    client.problem = error
    first.missed()
    first.close()
    return warnings[0]
  }

  it('a warning about a rediss:// URL hints at redis:// after a TLS error or a silent server', async () => {
    const hint = 'rediss:// means TLS; use redis:// for a server without TLS'
    expect(warningFor('rediss://redis:6379', problem('ERR_SSL_WRONG_VERSION_NUMBER'))).toContain(
      hint,
    )
    expect(warningFor('rediss://redis:6379', new Error('Connection timeout'))).toContain(hint)
    expect(warningFor('rediss://redis:6379', problem('ECONNREFUSED'))).not.toContain(hint)
    expect(warningFor('redis://redis:6379', new Error('Connection timeout'))).not.toContain(hint)
  })
})
