// test-group: io

/** Two gateways with one Redis: a job accepted by one, done by the other and readable at both. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'
import { ASYNC, as, readEvents, readJob, submit, untilStatus } from './jobs-kit.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

describe('jobs of two gateways with one Redis', () => {
  it('a job accepted by one gateway is done by the other and readable at both by its caller', async () => {
    const env = { REDIS_URL: redis.url, ANN: 'key-of-ann', BOB: 'key-of-bob' }
    const queue = { vendor: 'openai', model: 'gpt', keep: 0, leaseMs: 1_000 }
    const callers = [
      { key: 'env:ANN', user: 'ann' },
      { key: 'env:BOB', user: 'bob' },
    ]
    const taking = await startGateway(
      { jobQueues: { shared: { ...queue, concurrency: 0 } }, callers },
      {},
      env,
    )
    const guard = { url: taking.vendorUrl }
    const doing = await startGateway({ jobQueues: { shared: queue }, callers, guard }, {}, env)
    taking.vendor.set({ latencyMs: 300, tokens: 2 })
    for (const { url } of [taking, doing]) await ready(url)

    const { response, address } = await submit(taking, as('key-of-ann'))
    expect(response.status).toBe(202)
    // This gateway runs no worker, so it polls for the end.
    const headers = { ...as('key-of-ann'), accept: 'text/event-stream' }
    const watched = await Promise.all(
      [taking, doing].map(async ({ url }) =>
        readEvents(await fetch(`${url}${address}`, { headers })),
      ),
    )
    for (const events of watched) expect(events.at(-1)?.event).toBe('done')
    for (const { url } of [taking, doing]) {
      const own = await fetch(`${url}${address}/result`, { headers: as('key-of-ann') })
      expect([own.status, (await own.text()).includes('"usage"')]).toEqual([200, true])
      expect((await readJob(url, address, as('key-of-bob'))).status).toBe(404)
    }
    expect(doing.gateway.spillway.jobQueue('shared').snapshot()).toMatchObject({
      done: 1,
      added: 0,
    })
    expect(taking.gateway.spillway.jobQueue('shared').snapshot()).toMatchObject({
      done: 0,
      added: 1,
    })

    // An idempotency key is valid at both, and a job waiting at one can be cancelled at the other.
    await doing.gateway.spillway.jobQueue('shared').pause()
    const keyed = { ...as('key-of-ann'), 'idempotency-key': 'the same' }
    const [one, two] = [await submit(taking, keyed), await submit(doing, keyed)]
    expect(two.address).toBe(one.address)
    const cancelled = await fetch(`${doing.url}${one.address}`, {
      method: 'DELETE',
      headers: as('key-of-ann'),
    })
    expect(cancelled.status).toBe(200)
    const after = await readJob(taking.url, one.address, as('key-of-ann'))
    expect(after.document.status).toBe('cancelled')

    // No stored value contains a key.
    for (const secret of ['key-of-ann', 'key-of-bob'])
      expect(await keptIn(redis)).not.toContain(secret)
  })

  it('the job of a killed gateway is done by another', async () => {
    const { vendor, url } = await startVendor({ knobs: { tokens: 1, latencyMs: 60_000 } })
    const config = {
      vendors: { killed: { protocol: 'openai', url } },
      jobQueues: { survivors: { vendor: 'killed', model: 'gpt', leaseMs: '1s', keep: 0 } },
    }
    const start = () => startGatewayProcess({ config, env: { REDIS_URL: redis.url } })
    const first = await start()
    await ready(first.url)
    const taken = await fetch(`${first.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...ASYNC, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt', messages: [] }),
    })
    expect(taken.status).toBe(202)
    const address = taken.headers.get('location') ?? ''
    await until('it runs', () => vendor.atOnce === 1)
    first.child.kill('SIGKILL')
    await first.exit
    vendor.set({ latencyMs: 0 })
    const second = await start()
    expect(await untilStatus(second.url, address, 'done')).toMatchObject({ attempt: 2 })
    expect((await fetch(`${second.url}${address}/result`)).status).toBe(200)
  })
})

async function ready(url: string): Promise<void> {
  await expect.poll(async () => (await fetch(`${url}/health/ready`)).status).toBe(200)
}

/** The complete content of a server as text. */
async function keptIn(server: RedisServer): Promise<string> {
  const keys = (await server.send('KEYS', '*')) as string[]
  const parts = await Promise.all(
    keys.map(async (key) => {
      const type = await server.send('TYPE', key)
      if (type === 'hash') return server.send('HGETALL', key)
      if (type === 'zset') return server.send('ZRANGE', key, '0', '-1')
      return server.send('GET', key)
    }),
  )
  return JSON.stringify([keys, parts])
}
