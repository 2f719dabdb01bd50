/**
 * A rolling upgrade like that of Kubernetes: three gateways behind a proxy are replaced one after the other, under load
 * with plain requests and streams. A new gateway is ready before an old one gets SIGTERM. No request may fail.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { Agent, request } from 'undici'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { type GatewayProcess, startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario, UsageError } from '../scenario.js'
import { LoadBalancer } from './load-balancer.js'

const GATEWAYS = 3
const CLIENTS = { plain: 12, stream: 8 } as const
const REST_MS = 30
/** Time between two replacements. */
const PAUSE_MS = 1_000
const DRAIN = { delayMs: 1_000, graceMs: 15_000 } as const
/** A stream takes about three seconds, so some run through every SIGTERM. */
const MODELS = { plain: { latencyMs: 50 }, stream: { tokens: 30, tokenMs: 100 } } as const

export const rollout: Scenario = {
  name: 'rollout',
  what: 'three gateways behind a proxy, replaced one by one under load; --only kill ends them with SIGKILL instead',
  seconds: 30,
  options: ['only'],
  async run({ only }) {
    if (only !== undefined && only !== 'kill') {
      throw new UsageError(`unknown part "${only}"; expected: kill`)
    }
    return upgrade(only === 'kill' ? 'SIGKILL' : 'SIGTERM')
  },
}

async function upgrade(signal: 'SIGTERM' | 'SIGKILL'): Promise<Figure[]> {
  const vendor = createMockVendor({ models: MODELS })
  const { url: vendorUrl } = await vendor.start()
  const redis = await startRedis(await freePort())
  const start = () =>
    startGateway(configOf(vendorUrl), { REDIS_URL: `redis://127.0.0.1:${redis.port}` })
  const fleet = await Promise.all(Array.from({ length: GATEWAYS }, start))
  const proxy = new LoadBalancer()
  const load = new Load(await proxy.listen())
  const steps: Step[] = []
  try {
    await Promise.all(fleet.map((gateway) => proxy.add(gateway)))
    load.start()
    await sleep(PAUSE_MS)
    for (const old of [...fleet]) {
      const next = await start()
      fleet.push(next)
      await proxy.add(next)
      steps.push(await replace(old, signal, proxy))
      fleet.splice(fleet.indexOf(old), 1)
      await sleep(PAUSE_MS)
    }
    await load.stop()
    const answeredByNew = fleet.map((gateway) => proxy.remove(gateway))
    return [
      ...load.figures(signal),
      ...stepFigures(steps, signal),
      atLeast('least answered by a new gateway', Math.min(...answeredByNew), 1),
    ]
  } finally {
    await load.stop()
    await proxy.stop()
    await Promise.all(fleet.map((gateway) => gateway.stop()))
    await vendor.close()
    await redis.stop()
  }
}

interface Step {
  /** Requests that the old gateway was answering when it got the signal. */
  readonly running: number
  readonly drainMs: number
  readonly exitCode: number | null
}

async function replace(
  old: GatewayProcess,
  signal: NodeJS.Signals,
  proxy: LoadBalancer,
): Promise<Step> {
  const running = proxy.running(old)
  const startMs = performance.now()
  // stop() sends SIGTERM; a second one would end the drain at once.
  if (signal === 'SIGKILL') old.signal(signal)
  const exitCode = await old.stop()
  const drainMs = performance.now() - startMs
  proxy.remove(old)
  return { running, drainMs, exitCode }
}

function configOf(url: string): object {
  return {
    redis: 'env:REDIS_URL',
    expectedPods: GATEWAYS,
    log: { level: 'silent' },
    drain: DRAIN,
    vendors: {
      vendor: {
        protocol: 'openai',
        url,
        limits: [{ limit: 10_000, windowMs: '10s' }],
        breaker: { failureRate: 0.5, openMs: '5s' },
        queue: { size: 100, timeoutMs: '5s' },
      },
    },
  }
}

function stepFigures(steps: readonly Step[], signal: string): Figure[] {
  const running = Math.min(...steps.map((step) => step.running))
  const drainMs = Math.max(...steps.map((step) => step.drainMs))
  const figures = [
    atLeast('gateways replaced', steps.length, GATEWAYS),
    atLeast('least requests running at a signal', running, 1),
  ]
  if (signal === 'SIGKILL') return figures
  const failed = steps.filter(({ exitCode }) => exitCode !== 0).length
  return [
    ...figures,
    atMost('exit codes other than 0', failed, 0),
    atMost('longest drain, ms', drainMs, DRAIN.delayMs + DRAIN.graceMs),
  ]
}

type Kind = keyof typeof CLIENTS

/** Clients that send one request after the other through the proxy. */
class Load {
  readonly #url: string
  readonly #agent = new Agent()
  readonly #done = { plain: 0, stream: 0 }
  readonly #failures = new Map<string, number>()
  #running: Promise<void>[] = []
  #isOver = false

  constructor(url: string) {
    this.#url = url
  }

  start(): void {
    this.#running = Object.entries(CLIENTS).flatMap(([kind, clients]) =>
      Array.from({ length: clients }, () => this.#keepSending(kind as Kind)),
    )
  }

  /** Resolves when the last answer is complete. */
  async stop(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await Promise.all(this.#running)
    await this.#agent.destroy()
  }

  figures(signal: string): Figure[] {
    const failed = [...this.#failures.values()].reduce((sum, count) => sum + count, 0)
    for (const [what, count] of this.#failures) process.stderr.write(`  ${what}: ${count}\n`)
    return [
      reported('plain requests answered', this.#done.plain),
      reported('streams completed', this.#done.stream),
      signal === 'SIGKILL'
        ? atLeast('failed requests, as expected', failed, 1)
        : atMost('failed requests', failed, 0),
    ]
  }

  async #keepSending(kind: Kind): Promise<void> {
    while (!this.#isOver) {
      const failure = await this.#ask(kind).catch((error) => error.code ?? error.message)
      if (failure === undefined) this.#done[kind]++
      else this.#failures.set(failure, (this.#failures.get(failure) ?? 0) + 1)
      await sleep(REST_MS)
    }
  }

  /** @returns why the request failed, if it did */
  async #ask(kind: Kind): Promise<string | undefined> {
    const { statusCode, headers, body } = await request(`${this.#url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: kind, stream: kind === 'stream', messages: [] }),
      dispatcher: this.#agent,
    })
    const text = await body.text()
    if (statusCode !== 200) return `status ${statusCode} ${headers['spillway-decision'] ?? text}`
    return kind === 'stream' && !text.includes('[DONE]') ? 'a stream broke off' : undefined
  }
}
