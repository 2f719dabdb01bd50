// test-group: io

/** Limits per model and pools, in a gateway on one Redis. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { startGateway, startVendor } from './gateway-kit.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

const requests = (limit: number) => [{ limit, windowMs: '1h' }]
const OPUS = ['opus-4-1', 'opus-4-5', 'opus-4-5-fast']

let gateways = 0

async function start() {
  const mock = await startVendor({ knobs: { tokens: 1 } })
  const gateway = await startGateway({
    redis: { url: redis.url, prefix: `m${++gateways}:` },
    vendors: {
      openai: {
        protocol: 'openai',
        url: mock.url,
        limits: requests(30),
        models: [
          { match: 'mini', limits: requests(3) },
          { match: 'opus-4-*', pool: 'opus' },
        ],
        pools: { opus: { limits: requests(6) } },
      },
    },
  })
  /** Statuses of one request for each of these models, one after the other. */
  const statuses = async (...models: string[]) => {
    const all: number[] = []
    for (const model of models) {
      const answer = await gateway.chat({ model })
      await answer.text()
      all.push(answer.status)
    }
    return all
  }
  return { gateway, statuses }
}

const times = (count: number, ...models: string[]) =>
  Array.from({ length: count }, () => models).flat()

describe('models of a vendor', () => {
  it('two gateways grant 6 requests of a limit of 6 to a model that the configuration does not name', async () => {
    const mock = await startVendor({ knobs: { tokens: 1 } })
    const config = {
      redis: { url: redis.url, prefix: `m${++gateways}:` },
      vendors: { openai: { protocol: 'openai', url: mock.url, limits: requests(6) } },
    }
    const both = [await startGateway(config), await startGateway(config)]
    const all: number[] = []
    for (let request = 0; request < 10; request++) {
      const answer = await both[request % 2]?.chat({ model: 'gpt-4o' })
      await answer?.text()
      all.push(answer?.status ?? 0)
    }
    expect(all).toEqual([...times(6, '200'), ...times(4, '429')].map(Number))
  })

  it('two models have different limits, and three models share those of a pool', async () => {
    const { statuses } = await start()
    expect(await statuses(...times(5, 'mini'))).toEqual([200, 200, 200, 429, 429])
    expect(await statuses(...times(5, 'large'))).toEqual(times(5, '200').map(Number))
    const opus = await statuses(...times(4, ...OPUS))
    expect(opus.filter((status) => status === 200)).toHaveLength(6)
    expect(opus.filter((status) => status === 429)).toHaveLength(6)
  })

  it('made-up models are charged to the pool of their entry from the first request on', async () => {
    const { statuses } = await start()
    const made = Array.from({ length: 10 }, (_, index) => `opus-4-made-up-${index}`)
    const answers = await statuses(...made)
    expect(answers.filter((status) => status === 200)).toHaveLength(6)
  })
})
