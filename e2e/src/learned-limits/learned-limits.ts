/**
 * Two gateways are configured for 200 requests per 3 seconds. The vendor allows 60, later 30 or 200. With 60 callers,
 * with and without `learn`, the scenario measures refusals by the vendor and the use of its limit.
 */
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { startRedis } from '../faults/redis-process.js'
import { type GatewayProcess, startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario, UsageError } from '../scenario.js'
import { startLimitedVendor, type VendorRules, type WindowCount } from './limited-vendor.js'

const WINDOW_MS = 3_000
const CALLERS = 60
const WINDOWS = 14
const CHANGE = 8
const REST_MS = 10

interface Variant {
  readonly name: string
  readonly limits: VendorRules['limits']
  readonly windows: number
}

const VARIANTS: readonly Variant[] = [
  { name: '60', limits: [[0, 60]], windows: WINDOWS },
  {
    name: '60-30',
    limits: [
      [0, 60],
      [CHANGE, 30],
    ],
    windows: WINDOWS,
  },
  {
    name: '60-200',
    limits: [
      [0, 60],
      [CHANGE, 200],
    ],
    windows: CHANGE + 14,
  },
]

export const learnedLimits: Scenario = {
  name: 'learned-limits',
  what: 'two gateways learn that their vendor gives less than configured',
  seconds: 300,
  options: ['only'],
  async run({ only }) {
    // Child processes end with this process.
    process.setMaxListeners(0)
    const figures: Figure[] = []
    for (const window of ['fixed', 'sliding'] as const) {
      for (const retryAfter of [true, false]) {
        const after = retryAfter ? 'retry-after' : 'without'
        const measured = VARIANTS.map((variant) => ({
          name: `${window} ${after} ${variant.name}`,
          variant,
          rules: { windowMs: WINDOW_MS, window, retryAfter, limits: variant.limits },
        })).filter(({ name }) => only === undefined || name.includes(only))
        // In parallel: most of the time each run waits for the next window.
        figures.push(...(await Promise.all(measured.map(figuresOf))).flat())
      }
    }
    if (figures.length === 0) throw new UsageError(`unknown part "${only}"`)
    return figures
  },
}

async function figuresOf({
  name,
  variant,
  rules,
}: {
  name: string
  variant: Variant
  rules: VendorRules
}): Promise<Figure[]> {
  const { windows, limits } = variant
  const isConstant = limits.length === 1
  const [learned, plain] = await Promise.all([
    measure(rules, windows, true),
    isConstant ? measure(rules, windows, false) : undefined,
  ])
  const figures = judged(name, variant, learned)
  if (plain === undefined) return figures
  return [...figures, reported(`${name}: refused, learn: false`, shares(plain, 4).refused)]
}

function judged(
  name: string,
  { limits, windows }: Variant,
  counts: readonly WindowCount[],
): Figure[] {
  const rises = limits.length > 1 && (limits[1]?.[1] as number) > (limits[0]?.[1] as number)
  const { refused, use } = shares(counts.slice(0, windows), 4)
  const figures = [atMost(`${name}: refused`, refused, 0.1)]
  if (!rises) return [...figures, atLeast(`${name}: use`, use, 0.85)]
  const until = counts.slice(CHANGE).findIndex(({ accepted, limit }) => accepted >= 0.85 * limit)
  const recovered = until === -1 ? Number.POSITIVE_INFINITY : until + 1
  return [...figures, atMost(`${name}: windows to 85 %`, recovered, 10)]
}

function shares(counts: readonly WindowCount[], from: number) {
  const sum = { accepted: 0, refused: 0, limit: 0 }
  for (const { accepted, refused, limit } of counts.slice(from)) {
    sum.accepted += accepted
    sum.refused += refused
    sum.limit += limit
  }
  return { refused: sum.refused / (sum.refused + sum.accepted), use: sum.accepted / sum.limit }
}

async function measure(
  rules: VendorRules,
  windows: number,
  learn: boolean,
): Promise<WindowCount[]> {
  const vendor = await startLimitedVendor(rules)
  const redis = await startRedis(await freePort())
  const limits = [{ limit: 200, windowMs: WINDOW_MS, learn }]
  const queue = { size: 1_000, timeoutMs: 30_000 }
  const config = {
    redis: `redis://127.0.0.1:${redis.port}`,
    expectedPods: 2,
    vendors: { openai: { protocol: 'openai', url: vendor.url, limits, queue } },
    // Named models have their own lane from the first request on.
    routes: [{ path: '/v1/*', vendor: 'openai', models: ['gpt-4o', '*'] }],
  }
  const gateways = [await startGateway(config, {}), await startGateway(config, {})]
  const agent = new Agent({ connections: CALLERS })
  let over = false
  const callers = Array.from({ length: CALLERS }, async (_, index) => {
    const { url } = gateways[index % gateways.length] as GatewayProcess
    while (!over) if ((await ask(url, agent)) !== 200) await sleep(REST_MS)
  })
  await sleep(windows * WINDOW_MS)
  const counts = vendor.counts.slice(0, windows)
  over = true
  await Promise.all(callers)
  await Promise.all(gateways.map((each) => each.stop()))
  await agent.destroy()
  await redis.stop()
  await vendor.stop()
  return counts
}

async function ask(url: string, dispatcher: Agent): Promise<number> {
  const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'yes?' }] })
  try {
    const { statusCode, body: answer } = await request(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      dispatcher,
    })
    await answer.dump()
    return statusCode
  } catch {
    return 0
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
