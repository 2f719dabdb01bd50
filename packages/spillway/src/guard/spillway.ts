/** The entry point: one store, one pod, and a guard for each downstream. */

import { closedSpillwayError } from '../core/errors.js'
import { emit } from '../core/events.js'
import {
  type Duration,
  having,
  integer,
  OptionsError,
  object,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import { suggest } from '../core/options/suggest.js'
import type { Random } from '../core/random.js'
import { type Clock, systemClock } from '../core/time/clock.js'
import { clockOption, randomOption } from '../core/time/clock-options.js'
import { openProcessGauge, readProcess } from '../local/pod-metrics/process-gauge.js'
import { createMembership, type Member, type Membership } from '../shared/membership.js'
import { isSharingOff } from '../shared/outage/rules.js'
import { readStore } from '../shared/store-option.js'
import { memoryStore } from '../store/memory/memory-store.js'
import type { Store } from '../store/port.js'
import {
  type FleetReport,
  type FleetStoreStatus,
  lanesOf,
  localReportOf,
} from './fleet/fleet-report.js'
import { healthOf } from './fleet/health.js'
import { ownStatus } from './fleet/own-status.js'
import { readCommand } from './fleet/pod-commands.js'
import { RecentNotes } from './fleet/pod-notes.js'
import { type PodStatus, packPodStatus } from './fleet/pod-status.js'
import { type Guard, SharedGuard } from './guard.js'
import { registerInternals } from './internals.js'
import type { JobQueueOptions, WorkableJobQueue } from './jobs/api.js'
import { checkQueue, createGuardJobQueue, type GuardJobQueue } from './jobs/guard-job-queue.js'
import type { FleetJobQueueReport } from './jobs/queue-snapshot.js'
import { checkGuard, type GuardOptions } from './options.js'
import type { GuardTimings } from './pipeline/counters.js'
import type { GuardTracer } from './pipeline/trace.js'
import type { SpillwayHealth, SpillwaySnapshot } from './snapshot.js'

/** Options of `createSpillway()`. */
export interface SpillwayOptions {
  /** Where the state of all pods is kept. `spillway.close()` does not close it. Default: a memory store. */
  store?: Store
  /** Name of this pod. A random part is added, so that a restarted pod has another name. Default: `pod`. */
  pod?: string
  /**
   * Number of pods. While the store is unreachable, limits are divided by it or by the last known number of pods,
   * whichever is larger. Range: integers from 1. Default: 1.
   */
  expectedPods?: number
  /** Traces every call: `openTelemetryTracer` of `spillway/metrics`. Default: none. */
  tracer?: GuardTracer
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** All guards and job queues of a pod, with one store. Created by `createSpillway()`. */
export interface Spillway {
  /** This pod's name, random part included. */
  readonly pod: string
  /** The store that its guards share with other pods; without one, a memory store of this process. */
  readonly store: Store
  /**
   * Creates the guard of this name with these options. Without options it returns the existing guard.
   *
   * @example
   * const payments = spillway.guard('payments', { timeout: { callMs: '10s' }, retry: {} })
   */
  guard(name: string, options?: GuardOptions): Guard
  /**
   * Replaces the guard of this name by one with other options. Limits, breaker and user limits keep their
   * state, and counts continue. Close the old guard, which still serves its callers, when they are done.
   */
  replaceGuard(name: string, options: GuardOptions): Guard
  /**
   * Creates the job queue of this name, which all pods share. Without options it returns the existing one. Jobs
   * use the limits and the breaker of a guard.
   *
   * @example
   * const emails = spillway.jobQueue<Email>('emails', { guard: 'mail' })
   * emails.work((job, { signal }) => send(job.data, signal), { concurrency: 5 })
   * await emails.add({ to: 'ann@example.com' }, { tenant: 'acme' })
   */
  jobQueue<Data = unknown, Result = unknown>(
    name: string,
    options?: JobQueueOptions,
  ): WorkableJobQueue<Data, Result>
  /** State of all guards and job queues in this pod. */
  snapshot(): SpillwaySnapshot
  /** Whether all guards share their state through the store, and the problems if not. */
  health(): SpillwayHealth
  /** Histograms of waiting times and durations of each guard, measured since the first call of this method. */
  timings(): GuardTimings[]
  /** The live pods, with the snapshot that each reports. */
  pods(): Promise<Member[]>
  /** The state of the whole fleet, as the store has it. Does not reject: it reports that the store is unreachable. */
  fleet(): Promise<FleetReport>
  /**
   * Drains the workers of all job queues and all guards, and leaves the fleet. The store stays open.
   * @param options.graceMs - Longest wait for running calls. Range: from 0 ms. Default: 30 seconds.
   */
  close(options?: { graceMs?: Duration }): Promise<void>
}

const EXISTS = 'exists already; leave out the options to get it'

const readOptions = object({
  store: optional(readStore),
  pod: optional(text(), 'pod'),
  expectedPods: optional(integer({ min: 1 }), 1),
  tracer: optional(having<GuardTracer>('a tracer', 'begin')),
  clock: clockOption,
  random: randomOption,
})

/**
 * Creates the object that all guards and job queues of this pod belong to, with their store and clock.
 *
 * @example
 * const spillway = createSpillway({ store: redisStore({ url: process.env.REDIS_URL }) })
 */
export function createSpillway(options: SpillwayOptions = {}): Spillway {
  return new PodSpillway(validate('spillway', options, readOptions))
}

class PodSpillway implements Spillway {
  readonly pod: string
  readonly store: Store
  /** A store that was created here is closed here. */
  readonly #ownsStore: boolean
  readonly #options: ReturnType<typeof readOptions>
  readonly #guards = new Map<string, SharedGuard>()
  /** Replaced guards that may still have calls. */
  readonly #replaced = new Set<SharedGuard>()
  readonly #queues = new Map<string, GuardJobQueue<unknown, unknown>>()
  readonly #membership: Membership
  readonly #notes: RecentNotes
  readonly #onGuard = new Set<() => void>()
  #closeGauge: (() => void) | undefined
  #timing = false
  #drainRequested = false
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    const { store, clock, random } = options
    this.#options = options
    this.#ownsStore = store === undefined
    this.store = store ?? memoryStore({ clock })
    this.#notes = new RecentNotes(clock)
    this.#membership = createMembership({
      // With SPILLWAY_SHARED=off the pod does not join the fleet.
      store: isSharingOff() ? memoryStore({ clock }) : this.store,
      pod: options.pod,
      clock,
      random,
      snapshot: () => packPodStatus(this.#podStatus()),
      onCommand: (command) => this.#receiveCommand(command),
    })
    this.pod = this.#membership.pod
    if (clock === systemClock) this.#closeGauge = openProcessGauge()
    registerInternals(this, {
      clock,
      random,
      store: this.store,
      membership: this.#membership,
      guards: () => [...this.#guards.values()].filter(({ closed }) => !closed),
      onGuard: (listener) => {
        this.#onGuard.add(listener)
        return () => this.#onGuard.delete(listener)
      },
      standing: () => this.#standing(),
      note: (text) => this.#notes.add(text),
      queues: () => this.#queueList(),
    })
  }

  guard(name: string, options?: GuardOptions): Guard {
    validate('guard name', name, text())
    if (this.#closed) throw closedSpillwayError('guard', name)
    const known = this.#open(name)
    if (options === undefined) {
      if (known !== undefined) return known
      throw new OptionsError([{ path: `guard(${name})`, message: 'needs options the first time' }])
    }
    if (known !== undefined) {
      throw new OptionsError([{ path: `guard(${name})`, message: EXISTS }])
    }
    return this.#create(name, options, undefined)
  }

  replaceGuard(name: string, options: GuardOptions): Guard {
    const before = this.guard(name) as SharedGuard
    const guard = this.#create(name, options, before)
    for (const queue of this.#queues.values()) {
      const { guard: of, lane } = queue.snapshot()
      if (of === name) queue.useJobLane(guard.jobLane(lane))
    }
    for (const each of this.#replaced) if (each.closed) this.#replaced.delete(each)
    this.#replaced.add(before)
    return guard
  }

  #create(name: string, options: GuardOptions, before: SharedGuard | undefined): SharedGuard {
    const { clock, random } = this.#options
    const around = {
      store: this.store,
      sameClock: this.#ownsStore,
      pod: this.pod,
      clock,
      random,
      expectedPods: this.#options.expectedPods,
      tracer: this.#options.tracer,
    }
    const guard = new SharedGuard(name, checkGuard(name, options), around, before)
    if (this.#timing) guard.timings()
    this.#guards.set(name, guard)
    for (const listener of this.#onGuard) listener()
    return guard
  }

  jobQueue<Data = unknown, Result = unknown>(
    name: string,
    options?: JobQueueOptions,
  ): WorkableJobQueue<Data, Result> {
    validate('job queue name', name, text())
    if (this.#closed) throw closedSpillwayError('job queue', name)
    const known = this.#queues.get(name)
    if (options === undefined && known !== undefined) return known as WorkableJobQueue<Data, Result>
    if (options === undefined || known !== undefined) {
      const why = known === undefined ? 'needs options the first time' : EXISTS
      throw new OptionsError([{ path: `jobQueue(${name})`, message: why }])
    }
    const settings = checkQueue(name, options)
    const guard = this.#guardOf(name, options.guard)
    const queue = createGuardJobQueue<Data, Result>({
      name,
      store: this.store.queues,
      settings,
      jobLane: guard.jobLane(settings.lane),
      pod: this.pod,
      random: this.#options.random,
      onClosed: () => {
        // Snapshots of closing queues are still available.
        if (!this.#closed) this.#queues.delete(name)
      },
    })
    this.#queues.set(name, queue as GuardJobQueue<unknown, unknown>)
    return queue
  }

  /** The name of `jobQueue` before the first release. Not part of the interface. */
  queue(): never {
    throw new TypeError('spillway.queue() was renamed: use spillway.jobQueue()')
  }

  #guardOf(queue: string, guard: JobQueueOptions['guard']): SharedGuard {
    const known = this.#open(typeof guard === 'string' ? guard : (guard?.name ?? ''))
    if (known !== undefined && (typeof guard === 'string' || guard === known)) return known
    const names = [...this.#guards.keys()]
    const close = typeof guard === 'string' ? suggest(guard, names) : undefined
    const hint =
      close === undefined ? `known: ${names.join(', ') || 'none yet'}` : `did you mean '${close}'?`
    const message = `must be a guard of this Spillway, or its name; ${hint}`
    throw new OptionsError([{ path: `jobQueue(${queue}).guard`, message }])
  }

  /** After a guard was closed, its name can be used again. */
  #open(name: string): SharedGuard | undefined {
    const known = this.#guards.get(name)
    if (known?.closed !== true) return known
    this.#guards.delete(name)
    return undefined
  }

  snapshot(): SpillwaySnapshot {
    const guards = Array.from(this.#guards.values(), (guard) => guard.snapshot())
    const { live = 1 } = this.#membership ?? {}
    const health = healthOf(guards)
    const jobQueues = Array.from(this.#queues.values(), (queue) => queue.snapshot())
    return { pod: this.pod, health, livePods: live, guards, jobQueues, draining: this.#closed }
  }

  health(): SpillwayHealth {
    return healthOf(Array.from(this.#guards.values(), (guard) => guard.snapshot()))
  }

  timings(): GuardTimings[] {
    this.#timing = true
    return Array.from(this.#guards.values(), (guard) => guard.timings())
  }

  pods(): Promise<Member[]> {
    return this.#membership.members()
  }

  async fleet(): Promise<FleetReport> {
    const guards = [...this.#guards.values()].filter(({ closed }) => !closed)
    try {
      const members = await this.pods()
      // The pod's report in the store may be a second old, so its current state is used.
      const current = [...members, { snapshot: packPodStatus(this.#podStatus()) }]
      const reports = guards.map((guard) => guard.readFleet(lanesOf(current, guard.name)))
      return {
        store: this.#storeStatus(),
        livePods: members.length,
        pods: members.map(({ pod, ageMs }) => ({ pod, ageMs })),
        guards: await Promise.all(reports),
        jobQueues: await Promise.all(Array.from(this.#queues.values(), standingOf)),
      }
    } catch {
      const wallMs = this.#options.clock.wallMs()
      const known = guards.map((guard) => localReportOf(guard.snapshot(), wallMs))
      return {
        store: 'unreachable',
        livePods: this.#membership.live,
        pods: [],
        guards: known,
        jobQueues: [],
      }
    }
  }

  /** The store answers. A guard may still distrust it, for example after it lost its data. */
  #storeStatus(): FleetStoreStatus {
    if (!this.store.remote) return 'memory'
    const { guards } = this.snapshot()
    return guards.some(({ store }) => store?.status === 'untrusted') ? 'untrusted' : 'shared'
  }

  /** The status that other pods get every second. */
  #podStatus(): PodStatus {
    const guards = Array.from(this.#guards.values(), (guard) => guard.snapshot())
    const measured = this.#closeGauge === undefined ? undefined : readProcess()
    const queues = Array.from(this.#queues.values(), (queue) => queue.snapshot())
    return ownStatus(guards, queues, measured, this.#standing())
  }

  #standing() {
    const notes = this.#notes.recent()
    return { draining: this.#closed, drainRequested: this.#drainRequested, notes }
  }

  #receiveCommand(text: string): void {
    const known = readCommand(text)
    if (known === undefined) return
    this.#drainRequested = true
    emit({ type: 'pod.command', name: this.pod, command: known.what, by: known.by })
  }

  #queueList() {
    return Array.from(this.#queues, ([name, queue]) => ({
      name,
      guard: queue.snapshot().guard,
      queue,
    }))
  }

  async close(options: { graceMs?: Duration } = {}): Promise<void> {
    this.#closed = true
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue.close(options)))
    const guards = [...this.#guards.values(), ...this.#replaced]
    await Promise.all(guards.map((guard) => guard.close(options)))
    await this.#membership.close()
    this.#closeGauge?.()
    if (this.#ownsStore) await this.store.close()
  }
}

async function standingOf(queue: WorkableJobQueue): Promise<FleetJobQueueReport> {
  const { name, guard } = queue.snapshot()
  return { name, guard, ...(await queue.counts()) }
}
