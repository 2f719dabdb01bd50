/** The mock vendor in a separate process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { MockCall, MockCounts, MockVendorOptions } from '@spillway/mock-vendor'
import { onTestFinished } from 'vitest'
import { endWithThisProcess } from '../end-with-process.js'

const FIXTURE = fileURLToPath(new URL('../fixtures/mock-vendor.mjs', import.meta.url))

export interface VendorReport {
  /** `number` is the value of its header `x-number`; times are those of `sharedNowMs`. */
  calls: { number: string | undefined; end: MockCall['end']; endedAtMs: number }[]
  counts: MockCounts
  mostAtOnce: number
  openSockets: number
}

/** Monotonic time shared by all processes of this machine. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Starts a vendor process that is ended after the test. */
export async function startVendorProcess(options: MockVendorOptions) {
  const child = fork(FIXTURE, [JSON.stringify(options)])
  const ended = endWithThisProcess(child.pid)
  const exit = once(child, 'exit').then(ended)
  const answers = new Map<number, (answer: never) => void>()
  child.on('message', ({ id, answer }: { id: number; answer: never }) => answers.get(id)?.(answer))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exit
  })

  let requests = 0
  function ask<T>(word: 'start' | 'clear' | 'report'): Promise<T> {
    const id = ++requests
    const died = exit.then(() => Promise.reject(new Error('the process of the vendor has ended')))
    const answer = new Promise<T>((resolve) => answers.set(id, resolve))
    child.send({ id, word })
    return Promise.race([answer, died])
  }

  const { url } = await ask<{ url: string }>('start')
  return {
    url,
    clear: () => ask<void>('clear'),
    /** Answers once no request is open. */
    report: () => ask<VendorReport>('report'),
  }
}
