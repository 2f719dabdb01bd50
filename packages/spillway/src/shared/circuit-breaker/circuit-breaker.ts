/**
 * A circuit breaker that all pods share: when a downstream fails, every pod stops calling it at once, and a few
 * probes in the whole fleet find out when it works again. Without a store it is for this process alone.
 */

import { closedError, refuse } from '../../core/errors.js'
import { object, optional, text, validate } from '../../core/options/checks.js'
import { type CallEnd, judge, type Outcome, probeOutcome } from '../../core/outcome.js'
import { isThenable, toPromise } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption, randomOption } from '../../core/time/clock-options.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import { DEFAULT_LANE } from '../lanes/lane-names.js'
import { LaneRegistry, readMaxLanes } from '../lanes/lane-registry.js'
import type { StoreWatch } from '../outage/store-watch.js'
import { watchStore } from '../outage/store-watch.js'
import { createPodId } from '../pod-id.js'
import { readStore } from '../store-option.js'
import type {
  BreakerAnswer,
  BreakerPermit,
  CircuitBreaker,
  CircuitBreakerOptions,
  LaneOption,
} from './api.js'
import { BreakerLanes } from './breaker-lanes.js'
import { createControls } from './controls.js'
import { isBreakerPermit } from './lane/breaker-permit.js'
import { policyFields, readingPolicy } from './options.js'

const readOptions = readingPolicy(
  object({
    ...policyFields,
    name: text(),
    store: optional(readStore),
    maxLanes: readMaxLanes,
    pod: optional(text(), 'pod'),
    clock: clockOption,
    random: randomOption,
  }),
)

/**
 * Creates a circuit breaker that all pods share.
 *
 * @example
 * const breaker = createCircuitBreaker({ name: 'payments', store, failureRate: 0.5, openMs: '30s' })
 * await breaker.run(() => charge(order))
 */
export function createCircuitBreaker(options: CircuitBreakerOptions): CircuitBreaker {
  return new SharedCircuitBreaker(validate('circuitBreaker', options, readOptions))
}

class SharedCircuitBreaker implements CircuitBreaker {
  readonly state: CircuitBreaker['state']
  readonly snapshot: CircuitBreaker['snapshot']
  readonly onChange: CircuitBreaker['onChange']
  readonly isolate: CircuitBreaker['isolate']
  readonly release: CircuitBreaker['release']
  readonly trip: CircuitBreaker['trip']
  readonly reset: CircuitBreaker['reset']
  readonly name: string
  readonly #breaker: BreakerLanes
  readonly #lanes: LaneRegistry
  readonly #watch: StoreWatch | undefined
  readonly #clock: Clock
  readonly #slowMs: number | undefined
  readonly #judging: Parameters<typeof judge>[1]

  constructor(options: ReturnType<typeof readOptions>) {
    const { name, clock, slowMs, classify, store = memoryStore({ clock }) } = options
    this.name = name
    this.#clock = clock
    const pod = createPodId(options.pod, options.random)
    const { random } = options
    this.#watch = watchStore(store, { name, pod, clock, random, expectedPods: 1 })
    const { maxLanes, ...policy } = options
    this.#lanes = new LaneRegistry({ name, clock, maxLanes })
    const watch = this.#watch
    this.#breaker = new BreakerLanes({ name, store, pod, clock, policy, watch, lanes: this.#lanes })
    this.#watch?.start(undefined)
    const controls = createControls(this.#breaker, pod)
    this.state = controls.state
    this.snapshot = controls.snapshot
    this.onChange = controls.onChange
    this.isolate = controls.isolate
    this.release = controls.release
    this.trip = controls.trip
    this.reset = controls.reset
    this.#slowMs = slowMs
    this.#judging = {
      name,
      ...(slowMs !== undefined && { slowMs }),
      ...(classify !== undefined && { classify }),
    }
  }

  async allow({ lane }: LaneOption = {}): Promise<BreakerAnswer> {
    if (this.#breaker.closed) return { allowed: false, error: closedError('breaker', this.name) }
    const entry = await this.#breaker.enter(this.#laneOf(lane))
    return isBreakerPermit(entry)
      ? { allowed: true, permit: entry }
      : { allowed: false, error: entry }
  }

  record(outcome: Outcome, of: BreakerPermit | LaneOption = {}): void {
    if (isBreakerPermit(of)) this.#breaker.exit(of, outcome)
    else this.#breaker.record(this.#laneOf(of.lane), outcome)
  }

  run<T>(
    fn: () => T | PromiseLike<T>,
    options?: LaneOption & { signal?: AbortSignal },
  ): Promise<T> {
    const signal = options?.signal
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#breaker.closed) return refuse(closedError('breaker', this.name))
    const entry = this.#breaker.enter(this.#laneOf(options?.lane))
    if (isBreakerPermit(entry)) return this.#call(entry, fn, signal)
    if (!isThenable(entry)) return refuse(entry)
    return toPromise(entry).then((each) =>
      isBreakerPermit(each) ? this.#call(each, fn, signal) : refuse(each),
    )
  }

  flush(): Promise<void> {
    return this.#breaker.flush()
  }

  async close(): Promise<void> {
    await this.#breaker.close()
    await this.#watch?.close()
  }

  #laneOf(lane: string = DEFAULT_LANE): string {
    return this.#lanes.enter(lane)
  }

  #call<T>(
    permit: BreakerPermit,
    fn: () => T | PromiseLike<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const startMs = this.#slowMs === undefined ? 0 : this.#clock.now()
    let result: T | PromiseLike<T>
    try {
      result = fn()
      if (!isThenable(result)) {
        this.#end(permit, { value: result, signal }, startMs)
        return Promise.resolve(result)
      }
    } catch (error) {
      this.#end(permit, { error, signal }, startMs)
      return refuse(error)
    }
    return toPromise(result).then(
      (value) => {
        this.#end(permit, { value, signal }, startMs)
        return value
      },
      (error) => {
        this.#end(permit, { error, signal }, startMs)
        throw error
      },
    )
  }

  #end(permit: BreakerPermit, end: CallEnd, startMs: number): void {
    if (this.#slowMs !== undefined) end.durationMs = this.#clock.now() - startMs
    const verdict = judge(end, this.#judging)
    const outcome = probeOutcome(end, verdict)
    if (!permit.probe && verdict.outcome === 'ignored' && outcome === 'success') {
      this.#breaker.markAnswered(permit)
    }
    this.#breaker.exit(permit, permit.probe ? outcome : verdict.outcome)
  }
}
