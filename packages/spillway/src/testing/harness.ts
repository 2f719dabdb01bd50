/**
 * A fleet in one process, on one virtual clock: pods with a clock, randomness and a connection of
 * their own, and one store behind all of them. The same seed gives the same history, event by
 * event. For property tests and simulations of several pods.
 */

import {
  arrayOf,
  either,
  func,
  integer,
  number,
  object,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import { createRandom, type Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { memoryStore } from '../store/memory/memory-store.js'
import type { Store } from '../store/port.js'
import { createFaultyStore, type FaultyStore, type FaultyStoreOptions } from './faulty-store.js'
import { PodClock } from './pod-clock.js'
import { createVirtualClock, type VirtualClock, type VirtualClockOptions } from './virtual-clock.js'

/** Options of one pod of a harness. */
export interface PodOptions {
  /** Name of the pod. Default: `pod-` and its number from 1. */
  name?: string
  /** How far its time of day is ahead; negative: behind. Range: any number. Default: 0. */
  skewMs?: number
  /** How much too fast its clock runs, in millionths; negative: too slow. Range: from -500,000. Default: 0. */
  driftPpm?: number
}

/** What a pod is created with. */
export interface PodTools {
  /** Name of the pod. */
  readonly name: string
  /** Starts at 0 with the pod, and stops when it is killed. */
  readonly clock: Clock
  /** Its connection to the store of the fleet. */
  readonly store: FaultyStore
  /** Its source of randomness. */
  readonly random: Random
  /**
   * Aborted when the pod is killed. Pass it to work that would outlive the pod, such as vendor
   * calls.
   */
  readonly signal: AbortSignal
}

/** One pod of a harness. */
export interface HarnessPod<T> extends PodTools {
  /** What `create` returned. Throws once the pod was killed. */
  readonly value: T
  /** Whether the pod runs. */
  readonly alive: boolean
}

/** Options of `createHarness()`. */
export interface HarnessOptions<T> {
  /** Number of pods, or a list of options, one for each pod. Range: integers from 0. */
  pods: number | readonly PodOptions[]
  /** Seed of the random numbers. Range: any integer. */
  seed: number
  /** Creates what runs in a pod: a limiter, a guard, a whole service. */
  create: (pod: PodTools) => T
  /** Latency and timeout of every pod's connection. Default: 1 ms and 100 ms. */
  connection?: Pick<FaultyStoreOptions, 'latencyMs' | 'commandTimeoutMs'>
  /** Creates the store behind the connections. Default: a memory store. */
  createStore?: (clock: Clock) => Store
  /** Options of the virtual clock. Default: none. */
  clock?: VirtualClockOptions
}

/** Several pods with one store in virtual time, for tests. Created by `createHarness()`. */
export interface Harness<T> {
  /** The virtual clock of all pods. */
  readonly clock: VirtualClock
  /** For the test itself. Its draws do not affect the pods. */
  readonly random: Random
  /** The store behind the connections, for reading it without a round trip. */
  readonly store: Store
  /** In the order in which they started; killed ones stay in the list. */
  readonly pods: readonly HarnessPod<T>[]
  /** Lets this much virtual time pass. */
  run(ms: number): Promise<void>
  /** Lets time pass until the promise has settled, and returns its result. */
  settle<P>(promise: PromiseLike<P>): Promise<P>
  /** Adds a pod. */
  start(options?: PodOptions): HarnessPod<T>
  /**
   * Kills a pod: its timers never fire and its promises never settle. Commands that it had sent
   * still run. Responses of a vendor would still reach its code, see `signal`.
   */
  kill(index: number): void
  /** The store of the fleet loses everything, and every connection breaks. */
  restartStore(): void
}

const podFields = {
  name: optional(text()),
  skewMs: optional(number({ min: -Number.MAX_VALUE }), 0),
  driftPpm: optional(number({ min: -500_000 }), 0),
}
const readPod = object(podFields)

const readConnection = (value: unknown) => value as FaultyStoreOptions | undefined
const readClock = (value: unknown) => value as VirtualClockOptions | undefined

const readOptions = object({
  pods: either(integer({ min: 0 }), arrayOf(readPod)),
  seed: integer({ min: -Number.MAX_VALUE }),
  create: func<(pod: PodTools) => unknown>(),
  connection: readConnection,
  createStore: optional(func<(clock: Clock) => Store>(), (clock: Clock) => memoryStore({ clock })),
  clock: readClock,
})

/**
 * Creates several pods with one store in virtual time.
 *
 * @example
 * const harness = createHarness({
 *   pods: 3,
 *   seed: 1,
 *   create: ({ store, clock, random }) => createSpillway({ store, clock, random }),
 * })
 * await harness.run(60_000)
 */
export function createHarness<T>(options: HarnessOptions<T>): Harness<T> {
  return new VirtualFleet<T>(validate('harness', options, readOptions))
}

class Pod<T> implements HarnessPod<T> {
  readonly name: string
  readonly clock: PodClock
  readonly store: FaultyStore
  readonly random: Random
  readonly #controller = new AbortController()
  #made: { value: T } | undefined

  constructor(
    tools: Pick<Pod<T>, 'name' | 'clock' | 'store' | 'random'>,
    create: (pod: PodTools) => unknown,
  ) {
    this.name = tools.name
    this.clock = tools.clock
    this.store = tools.store
    this.random = tools.random
    this.#made = { value: create(this) as T }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get alive(): boolean {
    return this.#made !== undefined
  }

  get value(): T {
    if (this.#made === undefined) throw new Error(`${this.name} was killed`)
    return this.#made.value
  }

  kill(): void {
    this.#made = undefined
    this.store.sever()
    this.clock.stop()
    this.#controller.abort(new Error(`${this.name} was killed`))
  }
}

class VirtualFleet<T> implements Harness<T> {
  readonly clock: VirtualClock
  readonly random: Random
  readonly pods: Pod<T>[] = []
  store: Store
  readonly #options: ReturnType<typeof readOptions>
  readonly #seeds: Random

  constructor(options: ReturnType<typeof readOptions>) {
    this.#options = options
    this.#seeds = createRandom(options.seed)
    this.clock = createVirtualClock(options.clock)
    this.random = this.#fork()
    this.store = options.createStore(this.clock)
    const { pods } = options
    const each = typeof pods === 'number' ? Array.from({ length: pods }, () => ({})) : pods
    for (const pod of each) this.start(pod)
  }

  run(ms: number): Promise<void> {
    return this.clock.advance(ms)
  }

  settle<P>(promise: PromiseLike<P>): Promise<P> {
    return this.clock.until(promise)
  }

  start(options: PodOptions = {}): HarnessPod<T> {
    const { name = `pod-${this.pods.length + 1}`, ...time } = validate('pod', options, readPod)
    const store = createFaultyStore(() => this.store, {
      ...this.#options.connection,
      clock: this.clock,
      random: this.#fork(),
    })
    const clock = new PodClock(this.clock, time)
    const pod = new Pod<T>({ name, clock, store, random: this.#fork() }, this.#options.create)
    this.pods.push(pod)
    return pod
  }

  kill(index: number): void {
    const pod = this.pods[index]
    if (pod === undefined) throw new RangeError(`kill: unknown pod ${index}`)
    pod.kill()
  }

  restartStore(): void {
    this.store = this.#options.createStore(this.clock)
    for (const { store, alive } of this.pods) if (alive) store.restartEmpty()
  }

  /** A separate random stream, so that draws of one pod do not affect others. */
  #fork(): Random {
    return createRandom(Math.floor(this.#seeds() * 2 ** 32))
  }
}
