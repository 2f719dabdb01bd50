/** Pods with breakers in separate processes, and the vendor they call. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { BreakerSnapshot, CircuitBreakerOptions } from 'spillway/shared'

const PROGRAM = fileURLToPath(new URL('fixtures/breaker-pod.mjs', import.meta.url))
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))

export interface Counts {
  called: number
  succeeded: number
  refused: number
}

/** The tasks of a pod and their results; see its program. */
interface Jobs {
  open: (of: {
    name: string
    options: Omit<CircuitBreakerOptions, 'name' | 'store'>
    broken?: boolean
  }) => void
  close: (of: { name: string }) => void
  state: (of: { name: string }) => BreakerSnapshot & { commands: number }
  until: (of: { name: string; state: string }) => number
  record: (of: { name: string; outcome: string; times?: number }) => number
  hammer: (of: { name: string; lines: number; pauseMs: number; forMs: number }) => Counts
  rest: (of: { name: string }) => void
  load: (of: { name: string; perSecond: number; forMs: number }) => Counts & { commands: number }
  hold: (of: { name: string }) => boolean
  refuse: (of: { name: string; times: number }) => { refused: number; commands: number }
}

export interface BreakerPod {
  ask<J extends keyof Jobs>(job: J, details: Parameters<Jobs[J]>[0]): Promise<ReturnType<Jobs[J]>>
  /** Kills the process without any cleanup. */
  kill(): Promise<void>
  stop(): Promise<void>
}

/** Starts a pod and waits until it is connected. */
export async function startBreakerPod(url: string, vendorPort: number): Promise<BreakerPod> {
  const child = spawn(process.execPath, [PROGRAM, url, String(vendorPort)], {
    cwd: PACKAGE,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const gone = once(child, 'exit')
  const answers = createAnswers(child)
  await answers.next(0)
  let questions = 0
  return {
    ask(job, details) {
      const id = ++questions
      const answer = answers.next(id)
      child.send({ id, job, details })
      return answer as Promise<never>
    },
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
    async stop() {
      if (child.connected) child.disconnect()
      await gone
    },
  }
}

function createAnswers(child: ChildProcess) {
  interface Waiter {
    resolve(result: unknown): void
    reject(error: Error): void
  }
  const waiting = new Map<number, Waiter>()
  child.on('message', ({ id, result, error }: { id: number; result: unknown; error?: string }) => {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) waiter?.resolve(result)
    else waiter?.reject(new Error(error))
  })
  child.once('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`it ended with ${code ?? signal}`))
  })
  return {
    next(id: number): Promise<unknown> {
      const answer = new Promise<unknown>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
      })
      // A pod that was killed on purpose does not answer.
      answer.catch(() => {})
      return answer
    },
  }
}

export interface MockVendor {
  readonly port: number
  /** How the vendor answers the next call. */
  answer: (probe: boolean) => { status: number; afterMs: number }
  /** Probes in flight, the most at once, and the total. */
  probes: { now: number; most: number; total: number }
  /** Calls that were not probes. */
  calls: number
  stop(): Promise<void>
}

export async function startMockVendor(): Promise<MockVendor> {
  const end = (response: ServerResponse, status: number) => {
    response.statusCode = status
    response.end()
  }
  const server = createServer((request, response) => {
    const probe = request.headers['x-probe'] !== undefined
    if (!probe) vendor.calls++
    else {
      vendor.probes.total++
      vendor.probes.most = Math.max(vendor.probes.most, ++vendor.probes.now)
      // Whether the vendor has answered or the pod has disconnected.
      response.once('close', () => vendor.probes.now--)
    }
    if (request.url === '/hang') return
    const { status, afterMs } = vendor.answer(probe)
    if (afterMs === 0) end(response, status)
    else setTimeout(() => end(response, status), afterMs)
  }).listen(0, '127.0.0.1')
  // The vendor must not close a connection that a pod is about to reuse.
  server.keepAliveTimeout = 0
  await once(server, 'listening')
  const vendor: MockVendor = {
    port: (server.address() as AddressInfo).port,
    answer: () => ({ status: 200, afterMs: 0 }),
    probes: { now: 0, most: 0, total: 0 },
    calls: 0,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return vendor
}
