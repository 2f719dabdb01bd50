/**
 * A hundred real pods against a real Redis, and the same plan in the simulator. The figures of both must agree, which
 * validates the simulated figures of larger fleets.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  DEFAULT_PODS_PLAN,
  figuresOf,
  type PodsFigures,
  type PodsPlan,
  simulatePods,
} from '@spillway/simulator'
import { freePort } from '../faults/fleet.js'
import { startRedis } from '../faults/redis-process.js'
import { atMost, type Figure, reported, type Scenario } from '../scenario.js'
import { type FromPod, nowMs, type PodOptions, type PodResult, type Start } from './messages.js'
import { commandsSent, redisInfo } from './redis-info.js'
import { Vendors } from './vendors.js'

const PLAN: PodsPlan = {
  ...DEFAULT_PODS_PLAN,
  pods: 100,
  vendors: 20,
  durationMs: 60_000,
  outageEveryMs: 60_000,
}
const PROGRAM = fileURLToPath(new URL('pod.js', import.meta.url))
/** From the start of the last pod to the measurement. */
const SETTLE_MS = 2_000
/** Slower round trips come from processes that wait for a CPU, which the simulator does not model. */
const SLOWEST_MEDIAN_MS = 20
/** The simulated figure may differ from the real one by this share. */
const TOLERANCE = 0.15
/** Processes that share few CPUs delay each other, which the simulator does not model. */
const MOST_SPREAD_MS = 250

interface RealRun {
  readonly figures: PodsFigures
  readonly roundTripsMs: readonly number[]
  /** As Redis counts them. */
  readonly commandsPerPodSecond: number
  readonly redisBytes: number
}

export const pods: Scenario = {
  name: 'pods',
  what: '100 pods, 20 vendors and a real Redis, compared with the simulator',
  seconds: 90,
  async run() {
    const real = await runPods()
    const medianMs = percentile(real.roundTripsMs, 0.5)
    const p99Ms = percentile(real.roundTripsMs, 0.99)
    if (medianMs > SLOWEST_MEDIAN_MS) {
      throw new Error(
        `the machine is too busy for this comparison: the median round trip took ${medianMs.toFixed(0)} ms`,
      )
    }
    const simulated = await simulatePods({
      ...PLAN,
      storeLatencyMs: { median: medianMs, p99: p99Ms },
    })
    const { figures } = real
    const kinds = Object.keys({ ...figures.commandsByKind, ...simulated.commandsByKind }).sort()
    return [
      reported('round trip, median, ms', medianMs),
      reported('round trip, 99th percentile, ms', p99Ms),
      ...within(
        'commands per pod and second',
        real.commandsPerPodSecond,
        simulated.commandsPerPodSecond,
      ),
      ...within('share of the limit used', figures.limitUse!, simulated.limitUse!),
      ...within('fullest window, share of the limit', figures.worstWindow, simulated.worstWindow),
      ...within('breakers opened', figures.breaker.openings, simulated.breaker.openings),
      ...within('pods that agreed', figures.breaker.agreed, simulated.breaker.agreed),
      atMost('breaker spread, median, ms', figures.breaker.spreadP50Ms, MOST_SPREAD_MS),
      reported('breaker spread, most, ms', figures.breaker.spreadMostMs),
      reported('breaker spread, median, ms: simulated', simulated.breaker.spreadP50Ms),
      reported('breaker spread, most, ms: simulated', simulated.breaker.spreadMostMs),
      reported('Redis memory per pod, kB', real.redisBytes / PLAN.pods / 1_000),
      ...kinds.flatMap((kind) => [
        reported(`${kind}, per second`, figures.commandsByKind[kind] ?? 0),
        reported(`${kind}, per second: simulated`, simulated.commandsByKind[kind] ?? 0),
      ]),
    ]
  },
  table: realAndSimulated,
  page: 'docs/operations/sizing.md',
}

const SIMULATED = ': simulated'

/** One row for each figure, with the simulated value beside the real one. */
function realAndSimulated(figures: readonly Figure[]): string {
  const simulated = new Map<string, number>()
  for (const { figure, value } of figures) {
    if (figure.endsWith(SIMULATED)) simulated.set(figure.slice(0, -SIMULATED.length), value)
  }
  const rows = figures
    .filter(({ figure }) => !figure.endsWith(SIMULATED))
    .map(({ figure, value, target, holds }) => {
      const verdict = target === '' ? '' : holds ? 'yes' : '**no**'
      return `| ${figure} | ${value} | ${simulated.get(figure) ?? ''} | ${target} | ${verdict} |\n`
    })
  return `| Figure | Real | Simulated | Target | Holds |\n|---|--:|--:|---|---|\n${rows.join('')}`
}

function within(figure: string, real: number, simulated: number): Figure[] {
  const holds = Math.abs(simulated - real) <= TOLERANCE * real
  return [
    { ...reported(figure, real), target: 'within 15 %', holds },
    reported(`${figure}${SIMULATED}`, simulated),
  ]
}

async function runPods(): Promise<RealRun> {
  const redis = await startRedis(await freePort())
  const vendors = new Vendors(PLAN)
  const vendorPort = await vendors.start()
  const emptyBytes = await memoryOf(redis.port)
  const processes: ChildProcess[] = []
  try {
    // One after the other, so that starting processes do not take all CPUs from those that run.
    for (let pod = 0; pod < PLAN.pods; pod++) {
      const child = forkPod({ plan: PLAN, pod, redisPort: redis.port, vendorPort })
      processes.push(child)
      await next(child)
    }
    const startMs = nowMs() + SETTLE_MS
    vendors.startMs = startMs
    for (const child of processes) child.send({ startMs } satisfies Start)
    const results = Promise.all(processes.map(next))
    await sleep(startMs - nowMs())
    const before = await commandsSent(redis.port)
    await sleep(startMs + PLAN.durationMs - nowMs())
    const commands = (await commandsSent(redis.port)) - before
    const seconds = (nowMs() - startMs) / 1_000
    const redisBytes = (await memoryOf(redis.port)) - emptyBytes
    const all = (await results).map((message) => (message as { result: PodResult }).result)
    const record = {
      requests: sum(all.map(({ requests }) => requests)),
      served: sum(all.map(({ served }) => served)),
      commands: addUp(all.map((each) => each.commands)),
      arrivals: vendors.arrivals(),
      openings: all.flatMap(({ openings }) => openings),
    }
    return {
      figures: figuresOf(PLAN, record),
      roundTripsMs: all.flatMap((each) => each.roundTripsMs).sort((one, other) => one - other),
      commandsPerPodSecond: commands / seconds / PLAN.pods,
      redisBytes,
    }
  } finally {
    for (const child of processes) child.kill()
    vendors.stop()
    await redis.stop()
  }
}

function forkPod(options: PodOptions): ChildProcess {
  const args = [JSON.stringify(options)]
  return fork(PROGRAM, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Resolves with the next message of a pod. */
function next(child: ChildProcess): Promise<FromPod> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error('the process of a pod ended'))
    child.once('exit', onExit)
    child.once('message', (message: FromPod) => {
      child.off('exit', onExit)
      resolve(message)
    })
  })
}

async function memoryOf(port: number): Promise<number> {
  return Number((await redisInfo(port, 'memory')).get('used_memory_dataset'))
}

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(sorted.length * part) - 1] ?? 0
}

function addUp(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const kinds = new Set(counts.flatMap((each) => Object.keys(each)))
  return Object.fromEntries(
    [...kinds].map((kind) => [kind, sum(counts.map((each) => each[kind] ?? 0))]),
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
