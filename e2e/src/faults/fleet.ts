/** Four pods, each in its own process and behind its own proxy, with one store and one vendor. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FromPod, PodReport, ToPod } from './messages.js'
import { PodNetwork } from './pod-network.js'
import { type RedisProcess, startRedis } from './redis-process.js'
import { CountingVendor } from './vendor.js'

const PROGRAM = fileURLToPath(new URL('pod.js', import.meta.url))
const PODS = 4
const LONGEST_START_MS = 20_000
export const LIMIT = 200
export const WINDOW_MS = 5_000

export class Pod {
  /** All states so far, the current one last. */
  readonly states: { readonly status: string; readonly fromMs: number }[] = []
  /** Time at which the pod received the state of the open breaker. */
  openedMs: number | undefined
  readonly #child: ChildProcess
  readonly network: PodNetwork

  constructor(child: ChildProcess, network: PodNetwork) {
    this.#child = child
    this.network = network
    child.on('message', (message: FromPod) => {
      if (message.kind === 'status') {
        this.states.push({ status: message.status, fromMs: performance.now() })
      }
      if (message.kind === 'breaker' && message.lane === 'check' && message.to === 'open') {
        this.openedMs = performance.now()
      }
    })
  }

  get status(): string {
    return this.states.at(-1)?.status ?? 'starting'
  }

  /** Since when the pod has been in such a state. Infinity if it is in another one. */
  sinceMs(is: (status: string) => boolean): number {
    const other = this.states.findLastIndex(({ status }) => !is(status))
    return this.states[other + 1]?.fromMs ?? Number.POSITIVE_INFINITY
  }

  send(message: ToPod): void {
    this.#child.send(message)
  }

  async report(): Promise<PodReport> {
    const reported = new Promise<PodReport>((resolve) => {
      const onMessage = (message: FromPod) => {
        if (message.kind !== 'report') return
        this.#child.off('message', onMessage)
        resolve(message.report)
      }
      this.#child.on('message', onMessage)
    })
    this.send('report')
    return reported
  }

  async stop(): Promise<void> {
    this.#child.disconnect()
    await once(this.#child, 'exit')
    await this.network.stop()
  }
}

export class Fleet {
  readonly pods: Pod[] = []
  readonly vendor = new CountingVendor()
  redis!: RedisProcess
  /** A second server, for faults that need one. */
  other: RedisProcess | undefined
  /** Data of a store that persists it. */
  readonly folder: string | undefined
  /** Injects a fault again and again. */
  injecting: NodeJS.Timeout | undefined

  constructor(folder: string | undefined) {
    this.folder = folder
  }

  async start(): Promise<void> {
    this.redis = await startRedis(await freePort(), this.folder)
    const vendorPort = await this.vendor.start()
    for (let index = 0; index < PODS; index++) {
      const network = new PodNetwork(this.redis.port)
      const port = await network.start()
      const args = [port, vendorPort, `pod-${index}`, LIMIT, WINDOW_MS].map(String)
      const child = fork(PROGRAM, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      this.pods.push(new Pod(child, network))
    }
    if (await this.untilShared(LONGEST_START_MS)) return
    throw new Error(`not all pods reached the store within ${LONGEST_START_MS / 1_000} s`)
  }

  /** Returns false if not all pods share their limits in time. */
  async untilShared(withinMs: number): Promise<boolean> {
    const endMs = performance.now() + withinMs
    while (performance.now() < endMs) {
      if (this.pods.every(({ status }) => status === 'shared')) return true
      await sleep(10)
    }
    return false
  }

  /** Since when all pods have been in such a state. */
  sinceMs(is: (status: string) => boolean): number {
    return Math.max(...this.pods.map((pod) => pod.sinceMs(is)))
  }

  async stop(): Promise<void> {
    clearInterval(this.injecting)
    await Promise.all(this.pods.map((pod) => pod.stop()))
    await this.vendor.stop()
    await this.redis.stop()
    await this.other?.stop()
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
