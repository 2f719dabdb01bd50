/**
 * Random histories: nothing leaks, every call ends in time, and slots are held only by running
 * work. `SPILLWAY_SEED` selects other histories.
 */

import { describe, expect, it } from 'vitest'
import { SpillwayError } from '../src/core/errors.js'
import { sleep } from '../src/core/time/sleep.js'
import type { Guard } from '../src/guard/guard.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { CallContext } from '../src/guard/pipeline/context.js'
import type { RunOptions } from '../src/guard/run-options.js'
import { createSpillway, type Spillway } from '../src/guard/spillway.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { Store } from '../src/store/port.js'
import type { FaultyStore } from '../src/testing/faulty-store.js'
import { createHarness } from '../src/testing/harness.js'
import { createVirtualClock, type VirtualClock } from '../src/testing/virtual-clock.js'
import { fc } from './fast-check.js'
import { type Call, vendorError, watch } from './guard-pod.js'
import { usualOrLong } from './long-run.js'

const RUNS = Number(process.env.SPILLWAY_RUNS ?? usualOrLong(40, 20_000))
const GRACE_MS = 300
const CALL_MS = 400
const NAME = 'openai'

const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })

const config = fc.record({
  slots: fc.integer({ min: 1, max: 4 }),
  queue: maybe(fc.record({ size: fc.nat(6), timeoutMs: fc.integer({ min: 20, max: 800 }) })),
  breaker: maybe(fc.constantFrom('lane' as const, 'vendor' as const)),
  limit: maybe(fc.integer({ min: 2, max: 8 })),
  users: fc.boolean(),
  pace: maybe(fc.integer({ min: 3, max: 10 })),
  retry: fc.boolean(),
  /** `classify` marks every outcome as retryable, refusals included. */
  stubborn: fc.boolean(),
})
type Config = typeof config extends fc.Arbitrary<infer C> ? C : never

const call = fc.record({
  kind: fc.constant('call' as const),
  pod: fc.nat(1),
  lane: fc.constantFrom('a', 'b'),
  priority: fc.constantFrom('critical', 'high', 'normal', 'low'),
  user: fc.constantFrom('u', 'v', undefined),
  tokens: fc.nat(6),
  timeoutMs: maybe(fc.integer({ min: 1, max: 600 })),
  abortAfterMs: maybe(fc.nat(300)),
  idempotent: fc.boolean(),
  workMs: fc.nat(250),
  ends: fc.constantFrom(
    'value',
    'error',
    'refused',
    'throttled',
    'hint',
    'bug',
    'hang',
    'stubborn',
  ),
})

const event = fc.oneof(
  { weight: 10, arbitrary: call },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(120) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(5_000) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      pod: fc.nat(1),
      what: fc.constantFrom('slow', 'quick', 'lose', 'mute', 'sound', 'down', 'back', 'empty'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('close' as const),
      pod: fc.nat(1),
      graceMs: fc.nat(300),
    }),
  },
)

type CallPlan = typeof call extends fc.Arbitrary<infer C> ? C : never
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never

function optionsOf(config: Config): GuardOptions {
  const { slots, queue, breaker, limit, users, pace, retry, stubborn } = config
  return {
    ...(stubborn && { classify: (end) => ('error' in end ? { retryable: true } : undefined) }),
    ...(users && { userLimits: [{ per: 'user', limit: 6, windowMs: 1_000 }] }),
    ...(queue && { queue }),
    ...(breaker && {
      breaker: {
        ...{ per: breaker, consecutiveFailures: 3, windowMs: 2_000, openMs: 200, maxOpenMs: 400 },
        ...{ probes: 1, successes: 1, probeLeaseMs: 300, maxProbeMs: 600, rampMs: 50 },
      },
    }),
    ...(limit && {
      limits: [
        { limit, windowMs: 300 },
        { unit: 'tokens', limit: 20, windowMs: 500, per: 'vendor' },
      ],
      maxPauseMs: 500,
      basePauseMs: 50,
    }),
    ...(pace && { pace: { limit: pace, windowMs: 300 } }),
    ...(retry && { retry: { attempts: 3, baseMs: 10, maxMs: 200, budget: 1 } }),
    concurrency: { limit: slots, graceMs: GRACE_MS },
    timeout: { callMs: CALL_MS },
  }
}

/**
 * Work that was started. It holds a slot until it ends, or until its call has ended and graceMs is
 * over.
 */
interface Job {
  endedMs: number | undefined
  answeredMs: number | undefined
  answeredAtClosing: boolean
}

interface Pod {
  spillway: Spillway
  guard: Guard
  connection: FaultyStore | undefined
  jobs: Set<Job>
}

interface World {
  clock: VirtualClock
  pods: Pod[]
  store(): Store
  restartStore(): void
}

function createPod(spillway: Spillway, options: GuardOptions, connection?: FaultyStore): Pod {
  return { spillway, guard: spillway.guard(NAME, options), connection, jobs: new Set() }
}

function nearWorld(options: GuardOptions): World {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  const pods = [createPod(createSpillway({ store, clock, random: () => 0.5 }), options)]
  return { clock, pods, store: () => store, restartStore() {} }
}

function farWorld(options: GuardOptions, seed: number): World {
  const fleet = createHarness({
    pods: 2,
    seed,
    connection: { latencyMs: (random) => 1 + 4 * random() },
    create: ({ name, clock, store, random }) =>
      createPod(createSpillway({ pod: name, clock, store, random }), options, store),
  })
  return {
    clock: fleet.clock,
    pods: fleet.pods.map(({ value }) => value),
    store: () => fleet.store,
    restartStore: () => fleet.restartStore(),
  }
}

/** One call, and the conditions that must hold at the end. */
interface Made {
  plan: CallPlan
  call: Call
  beganMs: number
  abortedMs: number | undefined
}

class History {
  readonly #world: World
  readonly #config: Config
  readonly #made: Made[] = []
  readonly #closings: Promise<void>[] = []

  constructor(world: World, config: Config) {
    this.#world = world
    this.#config = config
  }

  async live(events: readonly Event[]): Promise<void> {
    for (const each of events) {
      if (each.kind === 'call') this.#call(each)
      else if (each.kind === 'fault') this.#fault(this.#pod(each.pod), each.what)
      else if (each.kind === 'close') this.#close(this.#pod(each.pod), each.graceMs)
      else await this.#pass(each.ms)
      await this.#pass(0)
    }
  }

  /** All faults end, and every call has time to finish. */
  async recover(): Promise<void> {
    const { pods } = this.#world
    for (const { connection } of pods) {
      connection?.loseRequests(0)
      connection?.loseReplies(0)
      connection?.setLatency(1)
      connection?.comeBack()
    }
    const pending = () => this.#made.some(({ call }) => call.state === 'pending')
    for (let ms = 0; pending() && ms < 10_000; ms += 500) await this.#pass(500)
    // Long work, probe leases, windows and pauses come to their end.
    await this.#pass(1_500)
    // Pods that could not leave properly expire, and their shares are redistributed.
    if (this.#world.pods.some(({ connection }) => connection !== undefined))
      await this.#pass(35_000)
    for (const { call, plan, beganMs, abortedMs } of this.#made) {
      expect(call.state, JSON.stringify(plan)).not.toBe('pending')
      const { atMs = 0 } = call
      if (plan.timeoutMs !== undefined)
        expect(atMs - beganMs).toBeLessThanOrEqual(plan.timeoutMs + 50)
      if (abortedMs !== undefined) expect(atMs).toBeLessThanOrEqual(abortedMs)
      if (call.error instanceof SpillwayError) expect(call.error.message).toMatch(/^openai/)
    }
  }

  /** Checks that nothing is held, first by reading and then by using everything. */
  async check(): Promise<void> {
    const { clock, pods } = this.#world
    await this.#closeCircuits()
    for (const pod of pods) {
      const { active, queue, closed } = pod.guard.snapshot()
      expect({ active, waiting: queue.waiting }).toEqual({ active: 0, waiting: 0 })
      expect(pod.connection?.counts.errors ?? 0).toBe(0)
      if (!closed) await this.#fill(pod)
    }
    await this.#awaitQuiet()
    for (const { spillway } of pods) await clock.until(spillway.close({ graceMs: 0 }))
    await clock.until(Promise.all(this.#closings))
    expect(clock.pending).toBe(0)
  }

  #pod(index: number): Pod {
    const { pods } = this.#world
    return pods[index % pods.length] as Pod
  }

  #call(plan: CallPlan): void {
    const { clock } = this.#world
    const pod = this.#pod(plan.pod)
    const abort = new AbortController()
    const { lane, priority, user, timeoutMs, idempotent } = plan
    const options: RunOptions = {
      ...{ lane, priority, idempotent, signal: abort.signal },
      ...(user && { user }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(this.#config.limit && { cost: { tokens: plan.tokens } }),
    }
    const promise = pod.guard.run((context) => this.#work(pod, plan, context), options)
    const made: Made = {
      plan,
      call: watch(clock, promise),
      beganMs: clock.now(),
      abortedMs: undefined,
    }
    this.#made.push(made)
    const { abortAfterMs } = plan
    if (abortAfterMs === undefined) return
    clock.schedule(abortAfterMs, () => {
      if (made.call.state === 'pending') made.abortedMs = clock.now()
      abort.abort(abortAfterMs % 2 === 0 ? 'left' : new Error('left'))
    })
  }

  #work(
    { jobs, guard }: Pod,
    { workMs, ends }: CallPlan,
    { signal, settle }: CallContext,
  ): unknown {
    const { clock } = this.#world
    const job: Job = { endedMs: undefined, answeredMs: undefined, answeredAtClosing: false }
    jobs.add(job)
    const ended = () => {
      job.endedMs = clock.now()
    }
    signal.addEventListener('abort', () => {
      job.answeredMs = clock.now()
      job.answeredAtClosing = guard.snapshot().closed
    })
    if (ends === 'bug') {
      ended()
      throw new TypeError('a bug')
    }
    const work = async () => {
      if (ends === 'hang') await sleep(clock, 1e9, signal)
      else
        await sleep(
          clock,
          workMs * (ends === 'stubborn' ? 4 : 1),
          ends === 'stubborn' ? undefined : signal,
        )
      settle({ tokens: 1 })
      if (ends === 'error') throw vendorError(503)
      if (ends === 'refused') throw vendorError(404)
      if (ends === 'throttled') throw vendorError(429)
      if (ends === 'hint') throw vendorError(429, { 'retry-after': '1' })
      return 'value'
    }
    return work().finally(ended)
  }

  #fault({ connection }: Pod, what: (Event & { kind: 'fault' })['what']): void {
    if (connection === undefined) return
    if (what === 'slow') connection.setLatency((random) => 20 + 120 * random())
    else if (what === 'quick') connection.setLatency(1)
    else if (what === 'lose') connection.loseRequests(0.3)
    else if (what === 'mute') connection.loseReplies(0.3)
    else if (what === 'down') connection.goDown()
    else if (what === 'back') connection.comeBack()
    else if (what === 'empty') this.#world.restartStore()
    else {
      connection.loseRequests(0)
      connection.loseReplies(0)
    }
  }

  #close({ guard }: Pod, graceMs: number): void {
    this.#closings.push(guard.close({ graceMs }))
  }

  /** Advances time and checks often who holds a slot. */
  async #pass(ms: number): Promise<void> {
    const { clock, pods } = this.#world
    const stepMs = Math.max(10, ms / 20)
    for (let leftMs = ms; leftMs >= 0; leftMs -= stepMs) {
      await clock.advance(Math.min(stepMs, leftMs))
      for (const { guard, jobs } of pods) {
        const { active, closed } = guard.snapshot()
        const held = holding(jobs, clock.now())
        // close() waits for calls, not for work they left behind.
        if (closed && active <= held) continue
        // A plain comparison, because `expect` would take most of the time.
        if (active === held && active <= this.#config.slots) continue
        expect({ active, slots: this.#config.slots }).toEqual({
          active: held,
          slots: expect.any(Number),
        })
        expect(active).toBeLessThanOrEqual(this.#config.slots)
      }
    }
  }

  /**
   * No probe is in flight any more. A circuit that is not closed would keep the pods from showing
   * that they have everything.
   */
  async #closeCircuits(): Promise<void> {
    const { clock, store } = this.#world
    const policy = optionsOf(this.#config).breaker
    if (policy === undefined) return
    const breaker = createCircuitBreaker({ name: NAME, store: store(), clock, ...policy })
    for (const lane of ['a', 'b', 'default']) {
      expect(breaker.snapshot({ lane }).probes).toBe(0)
      await breaker.reset({ lane })
    }
    await breaker.close()
    await this.#pass(400)
  }

  /** Starts as many calls as the pod has slots and lets all of them run at once. */
  async #fill({ guard }: Pod): Promise<void> {
    const { clock } = this.#world
    const { slots, limit = slots, pace = slots } = this.#config
    const most = Math.min(slots, limit, pace)
    let running = 0
    let finish = () => {}
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const calls = Array.from({ length: most }, () =>
      watch(
        clock,
        guard.run(() => {
          running++
          return finished
        }),
      ),
    )
    await clock.advance(20)
    expect(running).toBe(most)
    finish()
    // Long enough for the other pod to get as much.
    await clock.advance(600)
    expect(calls.map(({ state }) => state)).toEqual(calls.map(() => 'resolved'))
  }

  /** Waits for a moment between two heartbeats in which no timer keeps the process alive. */
  async #awaitQuiet(): Promise<void> {
    const { clock } = this.#world
    for (let i = 0; clock.pending > 0 && i < 20; i++) await clock.advance(7)
    expect(clock.pending).toBe(0)
  }
}

function holding(jobs: Set<Job>, nowMs: number): number {
  let count = 0
  for (const job of jobs) {
    const { endedMs, answeredMs, answeredAtClosing } = job
    const graceOver =
      answeredMs !== undefined && (answeredAtClosing || nowMs >= answeredMs + GRACE_MS)
    if (endedMs === undefined && !graceOver) count++
    else jobs.delete(job)
  }
  return count
}

describe('guard under random calls, faults, delays and closing', () => {
  const events = fc.array(event, { maxLength: 40, size: 'max' })
  it('guard with a memory store leaks nothing and ends every call in time', async () => {
    await fc.assert(
      fc.asyncProperty(config, events, async (each, all) => {
        const history = new History(nearWorld(optionsOf(each)), each)
        await history.live(all)
        await history.recover()
        await history.check()
      }),
      { numRuns: RUNS },
    )
  })

  it('guards of two pods with a failing store leak nothing and end every call in time', async () => {
    await fc.assert(
      fc.asyncProperty(config, events, fc.nat(1e9), async (each, all, seed) => {
        const history = new History(farWorld(optionsOf(each), seed), each)
        await history.live(all)
        await history.recover()
        await history.check()
      }),
      { numRuns: RUNS / 4 },
    )
  })
})
