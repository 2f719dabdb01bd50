/**
 * A typical service without Spillway: every call has a timeout and its own retries. Calls without a free slot
 * wait in an unbounded array. Requests of callers that have left are served nevertheless, because
 * aborts are not passed on.
 */
import type { PodTools, VendorCallOptions } from 'spillway/testing'
import { sleep } from 'spillway/testing'
import type { CheckedNaive } from '../scenario/read-scenario.js'
import type { SimulatedCall, SimulatedPod } from './pod.js'
import type { VendorLink } from './vendor-link.js'

/** One error object for all calls: a stack trace for each would take a tenth of the simulation's time. */
const TOO_LATE = new Error('too late')

export class NaivePod implements SimulatedPod {
  readonly #tools: PodTools
  readonly #options: CheckedNaive
  readonly #link: VendorLink
  readonly #line: (() => void)[] = []
  #active = 0

  constructor(tools: PodTools, options: CheckedNaive, link: VendorLink) {
    this.#tools = tools
    this.#options = options
    this.#link = link
  }

  get waiting(): number {
    return this.#line.length
  }

  run({ client }: SimulatedCall): Promise<unknown> {
    return this.#within(client.timeoutMs, this.#work(client.cost))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #work(cost: SimulatedCall['client']['cost']): Promise<unknown> {
    const { attempts, concurrency } = this.#options
    if (this.#active >= (concurrency ?? Number.POSITIVE_INFINITY)) {
      await new Promise<void>((resolve) => this.#line.push(resolve))
    } else {
      this.#active++
    }
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          if (attempt === 1) this.#link.vendor.noteFirstAttempt()
          return await this.#attempt(cost)
        } catch (error) {
          if (attempt === attempts) throw error
          const delayMs = this.#delayMs(attempt)
          if (delayMs > 0) await sleep(this.#tools.clock, delayMs)
        }
      }
    } finally {
      const next = this.#line.shift()
      if (next === undefined) this.#active--
      else next()
    }
  }

  #attempt(cost: SimulatedCall['client']['cost']): Promise<unknown> {
    const options: VendorCallOptions = cost === undefined ? {} : { cost }
    if (!this.#link.vendor.cancels) {
      return this.#within(this.#options.timeoutMs, this.#link.call(options))
    }
    const stop = new AbortController()
    const call = this.#link.call({ ...options, signal: stop.signal })
    return this.#within(this.#options.timeoutMs, call, () => stop.abort(TOO_LATE))
  }

  #delayMs(attempt: number): number {
    const { backoff, delayMs } = this.#options
    if (backoff === 'none') return 0
    if (backoff === 'constant') return delayMs
    return delayMs * 2 ** (attempt - 1) * this.#tools.random()
  }

  #within<T>(ms: number, work: Promise<T>, leave = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#tools.clock.schedule(ms, () => {
        leave()
        reject(TOO_LATE)
      })
      work.then(
        (value) => {
          timer.cancel()
          resolve(value)
        },
        (error) => {
          timer.cancel()
          reject(error)
        },
      )
    })
  }
}
