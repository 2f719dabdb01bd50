// test-group: io, slow

/**
 * An attack: callers send made-up model names. What it costs a pod and its Redis, measured on real processes.
 * `SPILLWAY_MODELS` sets another number of names, for a run by hand.
 */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { SCRIPTS } from '../../spillway/src/store/redis/scripts.gen.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { startGatewayProcess } from './gateway-process.js'

const MODELS = Number(process.env.SPILLWAY_MODELS ?? 1_500)
const TIMEOUT_MS = 60_000 + MODELS * 5
const AT_ONCE = 40
const MEGABYTE = 1_048_576

interface Snapshot {
  guards: { store?: { status: string } }[]
}

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis({ settings: { 'slowlog-max-len': 4_000_000 } })
})
afterAll(() => redis?.stop())

/** A vendor that knows `gpt` and, if it is `lenient`, every other model. */
async function startStrictVendor(lenient: boolean): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    let body = ''
    for await (const chunk of incoming) body += chunk
    const { model } = JSON.parse(body) as { model: string }
    const knows = lenient || model === 'gpt'
    outgoing.writeHead(knows ? 200 : 404, { 'content-type': 'application/json' })
    outgoing.end(JSON.stringify({ model, usage: { prompt_tokens: 1, completion_tokens: 1 } }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function client(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE + 5 })
  onTestFinished(() => agent.destroy())
  return async (model: string): Promise<{ status: number; text: string; lane: string }> => {
    const body = JSON.stringify({ model, messages: [] })
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const asked = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers })
    asked.end(body)
    const [answer] = await once(asked, 'response')
    let text = ''
    for await (const chunk of answer) text += chunk
    const lane = /lane="([^"]*)"/.exec(String(answer.headers['spillway-decision']))?.[1] ?? ''
    return { status: answer.statusCode, text, lane }
  }
}

/** Runs it for every number below `count`, several at once. */
async function forEach(count: number, run: (number: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await run(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function memoryOf(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]) / MEGABYTE
}

/** Microseconds of Redis time that `sync` took, and its largest number of keys. */
async function syncsOf({ send }: RedisServer): Promise<{ spentUs: number; mostKeys: number }> {
  const entries = (await send('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][]
  const syncs = entries.filter(([, , , [, sha]]) => sha === SCRIPTS.syncBreakers.sha)
  return {
    spentUs: syncs.reduce((sum, [, , us]) => sum + us, 0),
    mostKeys: Math.max(0, ...syncs.map(([, , , [, , keys]]) => Number(keys))),
  }
}

describe.each([
  [
    'that the vendor does not know cost a pod less than 60 MB and Redis less than 2 ms of sync per second',
    false,
  ],
  ['that the vendor accepts cost a pod less than 60 MB, and no sync has more than 200 keys', true],
])(`${MODELS} made-up models`, (claim, lenient) => {
  it(
    `${MODELS} made-up models ${claim}, and a configured model is served throughout`,
    async () => {
      const url = await startStrictVendor(lenient)
      const gateway = await startGatewayProcess({
        config: {
          redis: { url: redis.url, prefix: lenient ? 'lenient' : 'strict' },
          vendors: {
            openai: {
              protocol: 'openai',
              url,
              breaker: { failureRate: 0.5, minimumCalls: 10, openMs: '30s' },
              limits: [{ limit: 10_000_000, windowMs: '1m' }],
              queue: { size: 1_000 },
            },
          },
          routes: [{ vendor: 'openai', models: ['gpt', '*'] }],
          log: { level: 'warn' },
        },
      })
      const ask = client(gateway.url)
      // What the process needs for any traffic is not what is measured.
      await forEach(Math.min(3_000, MODELS), async () => void (await ask('gpt')))
      const before = await memoryOf(gateway.adminUrl)
      await redis.send('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
      await redis.send('SLOWLOG', 'RESET')
      const startMs = performance.now()
      const failed: object[] = []
      // Twice, because a model that was answered has a lane from then on.
      await forEach(2 * MODELS, async (number) => {
        const model = `model-${number % MODELS}`
        const { status, text } = await ask(model)
        // The vendor says which model it was asked for.
        const served = status === (lenient ? 200 : 404) && text.includes(`"${model}"`)
        if (!served) failed.push({ status, model, text })
        if (number % 100 !== 0) return
        const own = await ask('gpt')
        if (own.status !== 200 || own.lane !== 'gpt') failed.push(own)
      })
      const seconds = (performance.now() - startMs) / 1_000
      const { spentUs, mostKeys } = await syncsOf(redis)
      await redis.send('CONFIG', 'SET', 'slowlog-log-slower-than', '-1')
      const grown = (await memoryOf(gateway.adminUrl)) - before
      if (process.env.SPILLWAY_MODELS !== undefined) {
        const figures = {
          lenient,
          seconds,
          before,
          grown,
          usPerSecond: spentUs / seconds,
          mostKeys,
        }
        process.stdout.write(`${JSON.stringify(figures)}\n`)
      }
      expect(failed.slice(0, 3)).toEqual([])
      expect(grown).toBeLessThan(60)
      // Models that the vendor answers get lanes, up to `maxLanes`, and each is read once from the store.
      if (!lenient) expect(spentUs / seconds).toBeLessThan(2_000)
      expect(mostKeys).toBeLessThanOrEqual(200)
      // A busy machine may delay a reply for so long that the pod does without the store for a moment.
      const storeStatus = async () => {
        const snapshot = (await (await fetch(`${gateway.adminUrl}/snapshot`)).json()) as Snapshot
        return snapshot.guards[0]?.store?.status
      }
      await expect.poll(storeStatus, { timeout: 20_000 }).toBe('shared')
    },
    TIMEOUT_MS,
  )
})
