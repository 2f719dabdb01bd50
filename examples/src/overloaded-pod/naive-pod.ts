/**
 * A typical pod without Spillway: each call has a timeout and a few retries. It works well until the vendor is
 * overloaded.
 */
import type { Pod, PodOptions } from './pod.js'
import { wait } from './wait.js'

const TIMEOUT_MS = 1_000
const RETRIES = 3
const RETRY_DELAY_MS = 50

export function createNaivePod({ vendor, clock }: PodOptions): Pod {
  async function timeout(): Promise<never> {
    await wait(clock, TIMEOUT_MS)
    throw new Error(`no answer within ${TIMEOUT_MS} ms`)
  }

  async function handle(): Promise<string> {
    for (let retries = 0; ; retries++) {
      try {
        return await Promise.race([vendor.call(), timeout()])
      } catch (error) {
        if (retries === RETRIES) throw error
        await wait(clock, RETRY_DELAY_MS)
      }
    }
  }

  return { handle, waiting: 0 }
}
