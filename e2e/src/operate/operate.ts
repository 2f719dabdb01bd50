/**
 * Operator actions on gateways under load: twenty reloads, some with invalid files; one gateway replaced by another;
 * Redis killed and restarted empty. Every request is answered, and the calls to the vendor stay within its limit.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { type GatewayProcess, startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario, UsageError } from '../scenario.js'
import { Clients } from './load.js'

interface Extent {
  readonly windowMs: number
  readonly limit: number
  readonly clients: number
  /** Worker processes of each gateway. */
  readonly workers: number
  /** Number of windows without Redis, and number of windows measured afterwards. */
  readonly away: number
  readonly after: number
}

const LONG: Extent = { windowMs: 5_000, limit: 250, clients: 32, workers: 2, away: 2, after: 3 }
const SHORT: Extent = { windowMs: 2_000, limit: 60, clients: 12, workers: 1, away: 1, after: 2 }
/** Parts of the scenario, selected by `--only`. */
const PARTS: Readonly<Record<string, Extent>> = {
  short: SHORT,
  workers: { ...SHORT, workers: 2 },
  single: { ...LONG, workers: 1 },
}

const RELOADS = 20
/** Every n-th file is invalid. */
const INVALID_EVERY = 5
const QUEUE_MS = 500
/** Stalls of the vendor are measured this exactly. */
const RESOLUTION_MS = 10
/** Requests sent to a gateway that has not returned to shared state, about 20 s of them. */
const MOST_POLLS = 200
/** Far above the vendor's 35 ms, because a busy machine may stop all processes for seconds. */
const CALL_MS = 8_000
/** Time between failing readiness and closing the listener of a gateway that stops. */
const DELAY_MS = 1_000
/** Expected answers: a success, or a refusal by a limit or the queue. */
const EXPECTED = new Set([
  '200',
  'VENDOR_LIMITED',
  'QUEUE_TIMEOUT',
  'QUEUE_FULL',
  'STORE_UNAVAILABLE',
])

export const operate: Scenario = {
  name: 'operate',
  what: 'reloads, a replacement and a Redis crash with two gateways of two workers, under load; --only short runs a part',
  seconds: 40,
  options: ['only'],
  async run({ only }) {
    const extent = only === undefined ? LONG : PARTS[only]
    if (extent === undefined) {
      throw new UsageError(
        `unknown part "${only}"; expected one of: ${Object.keys(PARTS).join(', ')}`,
      )
    }
    return suffer(extent)
  },
}

async function suffer(extent: Extent): Promise<Figure[]> {
  const { windowMs, limit } = extent
  const vendor = createMockVendor({ knobs: { latencyMs: 20, tokens: 3, tokenMs: 5 } })
  const { url: vendorUrl } = await vendor.start()
  let redis = await startRedis(await freePort())
  const env = { REDIS_URL: `redis://127.0.0.1:${redis.port}`, KEY_0: 'one-key', KEY_1: 'another' }
  const files = (turn: number) => fileOf(turn, extent, vendorUrl)
  const fleet = await Promise.all([startGateway(files(0), env), startGateway(files(0), env)])
  const clients = new Clients()
  const reloads = new ReloadCounts()
  for (const gateway of fleet) clients.add(gateway)
  clients.start(extent.clients)
  try {
    await sleep(windowMs)
    // The first windows of the fleet are not measured.
    vendor.clear()
    const stalls = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    stalls.enable()
    // A third of the reloads in normal operation, a third during a replacement, a third without Redis.
    let turn = 0
    const reload = async (times: number) => {
      for (let i = 0; i < times; i++) {
        turn++
        await reloads.next(fleet[turn % 2] as GatewayProcess, turn, files)
      }
    }
    await reload(RELOADS / 2)
    const [, old] = fleet
    const gone = (old as GatewayProcess).stop()
    fleet[1] = await startGateway(files(turn), env)
    clients.add(fleet[1])
    await gone
    clients.remove((old as GatewayProcess).url)
    await reload(RELOADS / 4)
    await redis.kill()
    const crashMs = performance.now()
    const callsBefore = vendor.counts.arrived
    await reload(RELOADS / 4)
    await sleep(Math.max(0, extent.away * windowMs - (performance.now() - crashMs)))
    const usedWithoutRedis = (vendor.counts.arrived - callsBefore) / (performance.now() - crashMs)
    redis = await startRedis(redis.port)
    await sleep(extent.after * windowMs)
    const degraded = await Promise.all(fleet.map(staysDegraded))
    await clients.stop()
    const stallMs = Math.max(0, stalls.max / 1e6 - RESOLUTION_MS)
    const mostIn = (ms: number) => (vendor.mostInAnyWindow(ms) / limit) * 100
    return [
      ...clientFigures(clients),
      // The vendor runs in this process. After a stall it records all arrivals of the stall at once.
      atMost('most in any window less a stall, % of limit', mostIn(windowMs - stallMs), 105),
      reported('most in any window, % of limit', mostIn(windowMs)),
      reported('longest stall of the vendor, ms', stallMs),
      reported('used without Redis, % of limit', (usedWithoutRedis / (limit / windowMs)) * 100),
      ...reloads.figures(),
      atMost('gateways apart at the end', degraded.filter(Boolean).length, 0),
    ]
  } finally {
    await clients.stop()
    await Promise.all(fleet.map((gateway) => gateway.stop()))
    await vendor.close()
    await redis.stop()
  }
}

/** The limits stay the same, because they are shared; all other options change between reloads. */
function fileOf(turn: number, { windowMs, limit, workers }: Extent, url: string): object {
  return {
    expectedPods: 2,
    workers,
    // On a busy machine Redis may be slow without being unreachable. A killed Redis refuses connections at once.
    redis: { url: 'env:REDIS_URL', commandTimeoutMs: '2s' },
    log: { level: 'silent' },
    drain: { delayMs: DELAY_MS, graceMs: '10s' },
    vendors: {
      vendor: {
        protocol: 'openai',
        url,
        key: `env:KEY_${turn % 2}`,
        queue: { size: 40 + turn, timeoutMs: QUEUE_MS },
        // Some files halve the number of connections, others change the breaker.
        breaker: { failureRate: turn % 3 === 0 ? 0.5 : 0.6, openMs: '5s' },
        // Timeouts allow for a busy machine.
        limits: [{ limit, windowMs }],
        jitterMs: 250,
        concurrency: { limit: turn % 2 === 0 ? 50 : 100 },
        timeout: { callMs: CALL_MS },
      },
      // This vendor is present in every second file only.
      ...(turn % 2 === 0 && { other: { protocol: 'anthropic', url } }),
    },
    // Named models have their own lane from the first request on.
    routes: [{ path: '/v1/*', vendor: 'vendor', models: ['gpt', '*'], timeoutMs: `${10 + turn}s` }],
  }
}

/** Replaces the file repeatedly, each time after the gateway has read the last one. */
class ReloadCounts {
  #applied = 0
  #refused = 0

  async next(
    gateway: GatewayProcess,
    turn: number,
    fileAt: (turn: number) => object,
  ): Promise<void> {
    const before = await countsOf(gateway)
    const isInvalid = turn % INVALID_EVERY === 0
    gateway.rewrite(isInvalid ? `vendors: { vendor: { protocol: ${turn} } }` : fileAt(turn))
    // Half of the files are found by the gateway's file watcher, the others by SIGHUP.
    if (turn % 4 < 2) gateway.signal('SIGHUP')
    const result = isInvalid ? 'refused' : 'applied'
    for (let poll = 0; poll < 500; poll++) {
      const now = await countsOf(gateway)
      if (now[result] > before[result]) break
      await sleep(20)
    }
    const after = await countsOf(gateway)
    this.#applied += Math.min(1, after.applied - before.applied)
    this.#refused += Math.min(1, after.refused - before.refused)
  }

  figures(): Figure[] {
    const invalidFiles = RELOADS / INVALID_EVERY
    return [
      atLeast('reloads applied', this.#applied, RELOADS - invalidFiles),
      atLeast('files with a mistake refused', this.#refused, invalidFiles),
    ]
  }
}

async function countsOf({
  adminUrl,
}: GatewayProcess): Promise<Record<'applied' | 'refused', number>> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const count = (result: string) =>
    Number(new RegExp(`reloads_total{result="${result}"} (\\d+)`).exec(text)?.[1] ?? 0)
  return { applied: count('applied'), refused: count('refused') }
}

/** Whether a gateway does not return to shared state. A busy machine may delay that. */
async function staysDegraded({ adminUrl }: GatewayProcess): Promise<boolean> {
  for (let poll = 0; poll < MOST_POLLS; poll++) {
    const answer = await fetch(`${adminUrl}/health/ready`)
    if (!(await answer.text()).includes('degraded')) return false
    await sleep(100)
  }
  return true
}

function clientFigures({ seen }: Clients): Figure[] {
  const { sent, answers, lost, longestMs } = seen
  const sum = (which: (what: string) => boolean) =>
    [...answers].reduce((all, [what, count]) => all + (which(what) ? count : 0), 0)
  for (const [what, count] of answers) process.stderr.write(`  ${what}: ${count}\n`)
  if (lost.length > 0) process.stderr.write(`  lost: ${[...new Set(lost)].join(', ')}\n`)
  return [
    reported('requests', sent),
    reported('answered by the vendor', answers.get('200') ?? 0),
    atMost('without an answer', lost.length + (sent - lost.length - sum(() => true)), 0),
    // Requests whose queue timeout passed while a reply of the store was lost.
    reported('refused: the store is unreachable', answers.get('STORE_UNAVAILABLE') ?? 0),
    atMost(
      'answers that blame the gateway',
      sum((what) => !EXPECTED.has(what)),
      0,
    ),
    // The sum of all waits of a request, plus the delay of a busy machine.
    atMost('longest answer, ms', longestMs, QUEUE_MS + CALL_MS + 1_500),
  ]
}
