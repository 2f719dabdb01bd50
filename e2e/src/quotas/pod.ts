/**
 * A pod with agents that send requests as fast as their guard allows. `process.argv`: the port of Redis, the number of
 * this pod, and the number of pods. Its parent starts and stops runs; several may be under way.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSpillway, type Guard, SpillwayError } from 'spillway'
import { redisStore } from 'spillway/redis'
import { Agent } from './agent.js'
import type { FromPod, Run, ToPod } from './messages.js'
import { PlainAccounting } from './plain-accounting.js'
import { VENDORS, type Vendor } from './vendors.js'

const [redisPort, pod, pods] = process.argv.slice(2).map(Number) as [number, number, number]
/** Longest time between two turns, in which an agent runs its tools. */
const TOOLS_MS = 1_000

const spillway = createSpillway({
  store: redisStore({ url: `redis://127.0.0.1:${redisPort}` }),
  pod: `pod-${pod}`,
  expectedPods: pods,
})

/** The SDK whose protocol is given by an option. */
class AnySdk {}

type Send = (model: string, url: string, init: RequestInit & { body: string }) => Promise<Response>

class AgentTraffic {
  readonly #run: Run
  readonly #vendor: Vendor
  readonly #send: Send
  readonly #over = new AbortController()
  readonly #agents: Promise<void>[]

  constructor(run: Run) {
    this.#run = run
    // Each agent adds a listener.
    setMaxListeners(0, this.#over.signal)
    this.#vendor = VENDORS.find(({ quota }) => quota === run.quota) as Vendor
    const guard = spillway.guard(run.name, {
      limits: this.#vendor.limits.map((limit) => ({ ...limit, windowMs: run.windowMs })),
      // Processes on one machine wait longer for CPU time than pods do.
      jitterMs: 200,
      queue: { size: 10_000, timeoutMs: '10m' },
    })
    this.#send = senderOf(run, this.#vendor, guard)
    this.#agents = run.models.flatMap((model, index) =>
      Array.from({ length: run.agents }, (_, number) =>
        this.#work(model, run.seed + pod * 10_000 + index * 1_000 + number),
      ),
    )
  }

  async stop(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#agents)
  }

  async #work(model: string, seed: number): Promise<void> {
    const { windowMs, url } = this.#run
    const { signal } = this.#over
    const agent = new Agent(model, seed)
    try {
      // Agents start one after the other, as in production.
      await sleep(agent.random() * windowMs, undefined, { signal })
      while (!signal.aborted) {
        const body = JSON.stringify(this.#vendor.bodyOf(model, agent.next()))
        const headers = {
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
        }
        const init = { method: 'POST', headers, body, signal }
        const target = url + this.#vendor.pathOf(model)
        const response = await this.#send(model, target, init).catch(refusalIn)
        if (response?.status === 200) {
          agent.answered(this.#vendor.textIn((await response.json()) as never))
        } else {
          await response?.body?.cancel()
          agent.failed()
        }
        await sleep(agent.random() * TOOLS_MS, undefined, { signal })
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }
}

/** Undefined if Spillway refused the call. */
function refusalIn(error: unknown): undefined {
  if (!(error instanceof SpillwayError)) throw error
}

function senderOf({ accounting, quota }: Run, vendor: Vendor, guard: Guard): Send {
  if (accounting === 'preset') {
    const { fetch } = guard.sdk(AnySdk, { protocol: vendor.protocol, quota })
    return (_model, url, init) => fetch(url, init)
  }
  const plain = new PlainAccounting(vendor)
  return (model, url, init) => plain.fetchFor(guard, model, init.body)(url, init)
}

const runs = new Map<string, AgentTraffic>()
const toParent = (message: FromPod) => process.send?.(message)
process.on('message', async (message: ToPod) => {
  if ('start' in message) runs.set(message.start.name, new AgentTraffic(message.start))
  else {
    await runs.get(message.stop)?.stop()
    toParent({ stopped: message.stop })
  }
})
process.on('disconnect', () => process.exit())
toParent('ready')
