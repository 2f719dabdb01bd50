/** Two gateways with a vendor for each kind of failure. The model of a request selects its vendor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type GatewayProcess, startGateway } from '../gateway-process.js'

const BIN = fileURLToPath(
  new URL('../../../packages/gateway/dist/bin/spillway.js', import.meta.url),
)
const QUEUE = { size: 450, timeoutMs: '10s' }

/** The options of each vendor; queues and breakers as in deploy/kubernetes, with times that fit the scaled alerts. */
const VENDORS = {
  healthy: {},
  // 30 s, scaled.
  failing: { breaker: { failureRate: 0.5, openMs: 500 } },
  limited: { limits: [{ limit: 10, windowMs: '2s' }] },
  slow: { queue: QUEUE, concurrency: { limit: 2 } },
  unpaid: {},
} as const

export type VendorName = keyof typeof VENDORS

function configOf(vendorUrl: string): object {
  const vendors = Object.entries(VENDORS).map(([name, options]) => [
    name,
    { protocol: 'openai', url: vendorUrl, key: 'env:VENDOR_KEY', ...options },
  ])
  const routes = Object.keys(VENDORS).map((name) => ({
    path: '/v1/*',
    vendor: name,
    models: [name],
  }))
  return {
    expectedPods: 2,
    log: { level: 'silent' },
    vendors: Object.fromEntries(vendors),
    routes,
  }
}

export function startOne(vendorUrl: string, redisPort: number): Promise<GatewayProcess> {
  return startGateway(
    { redis: 'env:REDIS_URL', ...configOf(vendorUrl) },
    { REDIS_URL: `redis://127.0.0.1:${redisPort}`, VENDOR_KEY: 'a-key' },
  )
}

/** Clients that send one request after the other, in turn to each of `urls`, until they are stopped. */
export function sendRequests(
  urls: () => readonly string[],
  model: VendorName,
  { clients, restMs }: { clients: number; restMs: number },
): { stop(): Promise<void> } {
  const abort = new AbortController()
  let turn = 0
  const client = async () => {
    while (!abort.signal.aborted) {
      const all = urls()
      await chat(all[turn++ % all.length] as string, model, abort.signal)
      await sleep(restMs, undefined, { signal: abort.signal }).catch(() => undefined)
    }
  }
  const running = Array.from({ length: clients }, client)
  return {
    async stop() {
      abort.abort()
      await Promise.all(running)
    },
  }
}

async function chat(url: string, model: VendorName, signal: AbortSignal): Promise<void> {
  await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    signal,
  })
    .then((answer) => answer.arrayBuffer())
    // A gateway that was killed, or the end of the load.
    .catch(() => undefined)
}

/** Runs the command `spillway` with these arguments, as an operator does. */
export async function operate(...args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`spillway ${args.join(' ')} failed with exit code ${code}`)
}
