/**
 * The demo of the dashboard: load on the gateway and on two more pods, and a switch that breaks the mock vendor. Some
 * requests go to a job queue. All pods share the gateway's store, so a breaker that opens on one pod is open on all.
 */
import type { DashboardDemo } from '@spillway/dashboard'
import type { MockVendor } from '@spillway/mock-vendor'
import { createSpillway, type Spillway } from 'spillway'
import type { QueueConfig, VendorConfig } from '../config/config.js'
import { DemoClient } from './client.js'

export interface DemoOptions {
  readonly vendors: readonly VendorConfig[]
  /** Job queues of the gateway. The first one for a model of an OpenAI vendor gets jobs. */
  readonly jobQueues?: readonly QueueConfig[] | undefined
  readonly mock: MockVendor
  readonly mockUrl: string
  readonly store: Spillway['store']
  /** Base URL of the gateway, known once it listens. */
  readonly gatewayUrl: () => string
}

const OTHER_PODS = ['demo-b', 'demo-c']
/** Requests per second: through the gateway, and from each of the two pods. */
const GATEWAY_PER_SECOND = 8
const FROM_A_POD = 4
const LATER_MS = 10_000
/** Interval of clearing the mock vendor's log, which grows with every request. */
const FORGET_MS = 60_000

export class Demo implements DashboardDemo {
  readonly #options: DemoOptions
  readonly #client: DemoClient
  #pods: Spillway[] = []
  #timers: NodeJS.Timeout[] = []
  #load = false
  #broken = false
  #switching: Promise<void> = Promise.resolve()

  constructor(options: DemoOptions) {
    this.#options = options
    this.#client = new DemoClient(options.mockUrl)
  }

  state(): { load: boolean; broken: boolean } {
    return { load: this.#load, broken: this.#broken }
  }

  /** Applies changes one after the other. */
  set(change: { load?: boolean; broken?: boolean }): Promise<void> {
    const done = this.#switching.then(() => this.#set(change))
    // A failed change does not prevent the next one.
    this.#switching = done.catch(() => {})
    return done
  }

  async close(): Promise<void> {
    // Pods that fail to close end with the process.
    await this.set({ load: false, broken: false }).catch(() => {})
  }

  async #set({ load = this.#load, broken = this.#broken }): Promise<void> {
    if (broken !== this.#broken) {
      this.#broken = broken
      if (broken) this.#options.mock.set({ status: 503 })
      else this.#options.mock.reset()
    }
    if (load === this.#load) return
    if (load) {
      try {
        this.#begin()
      } catch (error) {
        await this.#end()
        throw error
      }
    }
    this.#load = load
    if (!load) await this.#end()
  }

  #begin(): void {
    const { vendors, store, mock, gatewayUrl } = this.#options
    this.#client.begin()
    this.#every(1_000 / GATEWAY_PER_SECOND, () => this.#client.callGateway(gatewayUrl()))
    for (const name of OTHER_PODS) {
      const pod = createSpillway({ store, pod: name })
      this.#pods.push(pod)
      const guards = vendors.map(({ name, protocol, guard }) => ({
        protocol,
        guard: pod.guard(name, guard),
      }))
      this.#every(1_000 / FROM_A_POD, () => this.#client.callThroughGuard(guards))
    }
    this.#every(FORGET_MS, () => mock.clear())
    const model = this.#modelThatWaits()
    if (model === undefined) return
    this.#client.submitJob(gatewayUrl(), model)
    this.#every(LATER_MS, () => this.#client.submitJob(gatewayUrl(), model))
  }

  #modelThatWaits(): string | undefined {
    const { vendors, jobQueues = [] } = this.#options
    const isOpenAi = (name: string) =>
      vendors.some((vendor) => vendor.name === name && vendor.protocol === 'openai')
    return jobQueues.find(({ vendor, model }) => model !== undefined && isOpenAi(vendor))?.model
  }

  async #end(): Promise<void> {
    for (const timer of this.#timers.splice(0)) clearInterval(timer)
    this.#client.end()
    await Promise.all(this.#pods.splice(0).map((pod) => pod.close({ graceMs: 0 })))
  }

  #every(ms: number, run: () => void): void {
    this.#timers.push(setInterval(run, ms).unref())
  }
}
