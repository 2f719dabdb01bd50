/** Starts Spillway's gateway as it is published: one process, nine stages, no refusals. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Preparation } from '../measure.js'
import { freePort } from '../own-process.js'
import { startProgram } from './program.js'

export interface SpillwayGateway {
  readonly url: string
  readonly adminUrl: string
  readonly pid: number
}

interface GatewayOptions {
  vendor: string
  /** Address of a Redis server. Default: the gateway keeps its state in memory. */
  redis?: string
  /** Processes that serve the data port. More than one process needs Redis. */
  workers?: number
  /** Arguments for Node, before the program. */
  nodeArgs?: readonly string[]
}

export const CALLER_KEY = 'bench-caller-key'
const VENDOR_KEY = 'bench-vendor-key'

const PROGRAM = fileURLToPath(
  new URL('../../../packages/gateway/dist/bin/spillway.js', import.meta.url),
)

export async function startGateway(
  { vendor, redis, workers = 1, nodeArgs = [] }: GatewayOptions,
  preparation: Preparation,
): Promise<SpillwayGateway> {
  // Both ports are reserved at the same time, so that they differ.
  const [port, adminPort] = await Promise.all([freePort(), freePort()])
  const folder = await mkdtemp(join(tmpdir(), 'spillway-bench-'))
  preparation.atEnd(() => rm(folder, { recursive: true, force: true }))
  const config = join(folder, 'spillway.yaml')
  await writeFile(config, configText({ port, adminPort, vendor, redis, workers }))
  const ports = ['--port', `${port}`, '--admin-port', `${adminPort}`]
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const { pid } = await startProgram(
    {
      name: 'the gateway',
      args: [...nodeArgs, PROGRAM, 'gateway', '--config', config, ...ports],
      env: { BENCH_CALLER_KEY: CALLER_KEY, BENCH_VENDOR_KEY: VENDOR_KEY },
      readyUrl: `${adminUrl}/health/ready`,
    },
    preparation,
  )
  return { url: `http://127.0.0.1:${port}`, adminUrl, pid: pid! }
}

interface Addresses {
  port: number
  adminPort: number
  vendor: string
  redis: string | undefined
  workers: number
}

/** Limits so high that every stage counts and none refuses. */
function configText({ port, adminPort, vendor, redis, workers }: Addresses): string {
  return `port: ${port}
host: 127.0.0.1
admin: { port: ${adminPort} }
${redis === undefined ? '' : `redis: ${redis}`}
workers: ${workers}
vendors:
  openai:
    protocol: openai
    url: ${vendor}
    key: env:BENCH_VENDOR_KEY
    shed: { maxQueue: 1000 }
    userLimits: [{ per: user, limit: 100000000, windowMs: 1m }]
    queue: { size: 1000, timeoutMs: 5s }
    breaker: { failureRate: 0.5, windowMs: 30s, minimumCalls: 10, openMs: 30s, probes: 3, successes: 2 }
    limits: [{ unit: requests, limit: 100000000, windowMs: 1m }, { unit: tokens, limit: 1000000000000, windowMs: 1m }]
    pace: { limit: 1000000, windowMs: 1s }
    concurrency: { limit: 500 }
    timeout: { callMs: 30s, firstByteMs: 10s, idleMs: 15s }
    retry: { attempts: 3, budget: 0.2, baseMs: 100 }
callers:
  - { key: env:BENCH_CALLER_KEY, user: bench, tier: pro, priority: normal }
log: { level: info }
`
}
