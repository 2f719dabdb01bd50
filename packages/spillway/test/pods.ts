/** Pods in separate processes, and the vendor they call. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { SharedRateLimiterOptions } from 'spillway/shared'

const PROGRAM = fileURLToPath(new URL('fixtures/limited-pod.mjs', import.meta.url))
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
/** Starts a program with another time of day; see scripts/ensure-faketime.mjs. */
const FAKETIME = 'faketime'

export const HAS_FAKETIME = spawnSync(FAKETIME, ['--version']).status === 0

/** A task of a pod; see its program. */
export interface Task {
  job: 'ask' | 'press' | 'spend'
  limiter: Omit<SharedRateLimiterOptions, 'store'>
  /** The command timeout of the store. */
  commandTimeoutMs?: number
  /** Loses every `every`-th reply to commands on keys that contain `key`. */
  lose?: { every: number; offset: number; key: string }
  [detail: string]: unknown
}

export interface Report {
  passed: number
  /** Calls that failed because the store did not answer. */
  failed: number
  /** Replies that could have been lost, and those that were. */
  replies: number
  lost: number
  /** The time of day in the pod. */
  wallMs: number
}

export interface Pod {
  /** The first report of the pod. */
  readonly ready: Report
  run(task: Task): Promise<Report>
  stop(): Promise<void>
}

export interface PodOptions {
  /** URL of the Redis server. */
  url: string
  vendorPort: number
  /** The offset of the pod's clock, such as `+1h`; needs `faketime`. */
  clock?: string
}

/** Starts a pod and waits until it is connected. */
export async function startPod({ url, vendorPort, clock }: PodOptions): Promise<Pod> {
  const node = [process.execPath, PROGRAM, url, String(vendorPort)]
  const [command = '', ...args] = clock === undefined ? node : [FAKETIME, '-f', clock, ...node]
  const child = spawn(command, args, {
    cwd: PACKAGE,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ready = await nextReport(child)
  return {
    ready,
    run(task) {
      const report = nextReport(child)
      child.send(task)
      return report
    },
    async stop() {
      if (!child.connected) return
      const gone = once(child, 'exit')
      // Not by a signal: with faketime the child process is not the pod itself.
      child.disconnect()
      await gone
    },
  }
}

async function nextReport(child: ChildProcess): Promise<Report> {
  const stop = new AbortController()
  const { signal } = stop
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`the pod ended with ${code}`)
  })
  died.catch(() => {})
  try {
    const [report] = await Promise.race([once(child, 'message', { signal }), died])
    return report
  } finally {
    stop.abort()
  }
}

/** A call as the vendor sees it. */
export interface Arrival {
  atMs: number
  lane: string
  /** In tokens. */
  estimate: number
  actual: number
}

export interface Vendor {
  readonly port: number
  /** The calls that arrived since the last request, with their times. */
  takeArrivals(): Arrival[]
  stop(): Promise<void>
}

export async function startVendor(): Promise<Vendor> {
  const arrivals: Arrival[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    createInterface({ input: socket }).on('line', (line) => {
      const atMs = performance.now()
      const [lane = '', estimate, actual] = line.split(' ')
      arrivals.push({ atMs, lane, estimate: Number(estimate), actual: Number(actual) })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    takeArrivals: () => arrivals.splice(0),
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The most units used in any window of this length. */
export function mostInAWindow(
  arrivals: readonly Arrival[],
  windowMs: number,
  unitsOf: (arrival: Arrival) => number = () => 1,
): number {
  let most = 0
  let units = 0
  let start = 0
  for (const arrival of arrivals) {
    units += unitsOf(arrival)
    for (; arrival.atMs - arrivals[start]!.atMs >= windowMs; start++) {
      units -= unitsOf(arrivals[start]!)
    }
    most = Math.max(most, units)
  }
  return most
}
