/** One pod with one guard in virtual time, and another pod that reads the shared state. */
import { SpillwayError } from '../src/core/errors.js'
import { createRandom, type Random } from '../src/core/random.js'
import type { Guard } from '../src/guard/guard.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { CallFunction } from '../src/guard/pipeline/context.js'
import type { RunOptions } from '../src/guard/run-options.js'
import { createSpillway, type Spillway } from '../src/guard/spillway.js'
import type { CircuitBreaker } from '../src/shared/circuit-breaker/api.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import type { SharedRateLimiter } from '../src/shared/rate-limiter/api.js'
import { createSharedRateLimiter } from '../src/shared/rate-limiter/rate-limiter.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { Store } from '../src/store/port.js'
import { createFaultyStore, type FaultyStore } from '../src/testing/faulty-store.js'
import { createVirtualClock, type VirtualClock } from '../src/testing/virtual-clock.js'

export type Where = 'memory' | 'remote'
export const EVERYWHERE: readonly Where[] = ['memory', 'remote']

/** The state of a call as its caller sees it. */
export interface Call<T = unknown> {
  state: 'pending' | 'resolved' | 'rejected'
  value: T | undefined
  error: unknown
  /** When the call settled, which must happen only once. */
  atMs: number | undefined
  readonly promise: Promise<void>
}

/** A function that runs until it is finished by the test or its signal is aborted. */
export interface Job {
  readonly fn: CallFunction<unknown>
  /** How often it was started, and how many runs are active. */
  readonly started: number
  readonly running: number
  finish(value?: unknown): void
  fail(error: unknown): void
}

export interface GuardPod {
  readonly clock: VirtualClock
  readonly spillway: Spillway
  readonly guard: Guard
  /** The store of the pod: the store itself or a connection to it. */
  readonly store: Store
  readonly connection: FaultyStore | undefined
  /** The other pod, which uses the store directly. */
  readonly breaker: CircuitBreaker
  readonly limiter: SharedRateLimiter
  run<T>(fn: CallFunction<T>, options?: RunOptions): Call<T>
  /** A call that ends at once. */
  quick(options?: RunOptions): Call
  /** Permits charged in a lane. */
  used(lane?: string): Promise<number>
}

export const LATENCY_MS = 2

export function createGuardPod(
  options: GuardOptions,
  {
    where = 'memory',
    seed = 1,
    random = createRandom(seed),
  }: { where?: Where; seed?: number; random?: Random } = {},
): GuardPod {
  const clock = createVirtualClock()
  const behind = memoryStore({ clock })
  const connection =
    where === 'remote'
      ? createFaultyStore(behind, { clock, random: createRandom(seed), latencyMs: LATENCY_MS })
      : undefined
  const store = connection ?? behind
  const spillway = createSpillway({ store, pod: 'pod', clock, random })
  const guard = spillway.guard('openai', options)
  const shared = { name: 'openai', store: behind, pod: 'other', clock }
  const breaker = createCircuitBreaker({ ...shared, ...options.breaker })
  const { limits = [{ limit: 1, windowMs: 1 }], jitterMs } = options
  const limiter = createSharedRateLimiter({ ...shared, limits, ...(jitterMs && { jitterMs }) })
  const run = <T>(fn: CallFunction<T>, runOptions?: RunOptions) =>
    watch(clock, guard.run(fn, runOptions))
  return {
    clock,
    spillway,
    guard,
    store,
    connection,
    breaker,
    limiter,
    run,
    quick: (runOptions) => run(() => 'done', runOptions),
    async used(lane) {
      const { limits: figures } = await limiter.figures(lane === undefined ? {} : { lane })
      return figures[0]?.used ?? 0
    },
  }
}

export function watch<T>(clock: VirtualClock, promise: Promise<T>): Call<T> {
  const settled = (state: Call['state']) => {
    call.state = state
    call.atMs = clock.now()
  }
  const call: Call<T> = {
    state: 'pending',
    value: undefined,
    error: undefined,
    atMs: undefined,
    promise: promise.then(
      (value) => {
        settled('resolved')
        call.value = value
      },
      (error) => {
        settled('rejected')
        call.error = error
      },
    ),
  }
  return call
}

export function createJob(): Job {
  const ends = new Set<{ resolve: (value: unknown) => void; reject: (error: unknown) => void }>()
  const all = (
    end: (each: { resolve: (v: unknown) => void; reject: (e: unknown) => void }) => void,
  ) => {
    for (const each of [...ends]) end(each)
  }
  let started = 0
  return {
    fn: ({ signal }) => {
      started++
      return new Promise((resolve, reject) => {
        const end = {
          resolve: (value: unknown) => {
            ends.delete(end)
            resolve(value)
          },
          reject: (error: unknown) => {
            ends.delete(end)
            reject(error)
          },
        }
        ends.add(end)
        signal.addEventListener('abort', () => end.reject(signal.reason), { once: true })
      })
    },
    get started() {
      return started
    },
    get running() {
      return ends.size
    },
    finish: (value) => all(({ resolve }) => resolve(value)),
    fail: (error) => all(({ reject }) => reject(error)),
  }
}

/** A function that always fails in the same way and counts its runs. */
export function createFailure(error: unknown): { fn: () => Promise<never>; started: number } {
  const failure = {
    started: 0,
    fn: () => {
      failure.started++
      return Promise.reject(error)
    },
  }
  return failure
}

/** An error as a vendor's client throws it. */
export function vendorError(status: number, headers: Record<string, string> = {}): Error {
  return Object.assign(new Error(`the vendor answered ${status}`), { status, headers })
}

/** The code of a refusal, or the state of the call. */
export function fateOf(call: Call): string {
  if (call.state !== 'rejected') return call.state
  return call.error instanceof SpillwayError ? call.error.code : String(call.error)
}

/** The number of calls with each fate. */
export function countFates(calls: readonly Call[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const call of calls) counts[fateOf(call)] = (counts[fateOf(call)] ?? 0) + 1
  return counts
}
