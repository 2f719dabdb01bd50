/**
 * Works on the jobs of a queue. It requests as many jobs as it could start now. If it gets fewer, it sleeps until the
 * store wakes it or until the time that the store named. For each new job one sleeping worker is woken; a worker that
 * gets all it requested and leaves jobs behind wakes the next.
 */

import { callSafely, emit, listening } from '../../core/events.js'
import type { Random } from '../../core/random.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { nextTickBatch } from '../../core/time/next-tick-batch.js'
import { type BackoffPolicy, backoffMs } from '../../local/retry/backoff.js'
import { type CheckedSettings, toUs } from '../../shared/job-queue/options.js'
import type {
  Finished,
  JobEnd,
  QueueRef,
  QueueStore,
  ReservedJob,
  ReserveReply,
} from '../../store/queue-port.js'
import type { Permits } from '../pipeline/stage.js'
import type { JobHandler, JobWorker } from './api.js'
import { Finisher } from './finisher.js'
import { emitJobOutcome, jobOutcomeOf } from './job-events.js'
import type { JobLane, JobRoundTrip } from './job-lane.js'
import { Leases } from './leases.js'
import { noWork, type WorkerSnapshot } from './queue-snapshot.js'
import { errorTextOf, RunningJob, type TurnEnd } from './running-job.js'

export interface WorkerOptions<Data, Result> {
  id: string
  ref: QueueRef
  store: QueueStore
  jobLane: JobLane
  settings: CheckedSettings & BackoffPolicy
  handler: JobHandler<Data, Result>
  concurrency: number
  clock: Clock
  random: Random
  onClosed(): void
}

const MOST_PER_ROUND_TRIP = 100
/**
 * Interval of requests that make up for lost wake-ups. Each wait varies by 25 %, so that workers do not poll together.
 */
const POLL_MS = 5_000
/** The store does not wake a worker that has sent no request for this long. */
const PARK_MS = 3 * POLL_MS
/** This pod has no free slot for jobs: it checks again after this time. */
const BUSY_MS = 20
/**
 * One worker requests a delayed job when it is due. If its timer fired too early, it would get nothing, and the store
 * would wait for the same worker. So it sends the request slightly later.
 */
const TIMER_MARGIN_MS = 1
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000
/** A `Retry-After` may name any number; a job waits no longer than this because of one. */
const LONGEST_DELAY_MS = 86_400_000

export class QueueWorker<Data, Result> implements JobWorker {
  readonly id: string
  readonly #options: WorkerOptions<Data, Result>
  readonly #running = new Map<string, RunningJob<Data, Result>>()
  readonly #finisher: Finisher
  readonly #leases: Leases
  readonly #counts = noWork()
  /** How long results and dead letters are kept, and how many turns of a job need not count. */
  readonly #endSettings: { resultUs: number; deadUs: number; uncountedTurns: number }
  readonly #stopListening: () => void
  readonly #unwatch: () => void
  #reserving = false
  /** A wake-up arrived during a request. */
  #wokenDuringRequest = false
  #pollTimer: Timer | undefined
  /** Due time of the timer; Infinity if none is set. */
  #pollDueMs = Number.POSITIVE_INFINITY
  /** Time at which the store expects a request of this worker. */
  #expectedByStoreMs = Number.NEGATIVE_INFINITY
  /** The poll timer has fired, and no request was sent since. */
  #isPollDue = false
  /** Set while this pod has nothing free for jobs. */
  #busyTimer: Timer | undefined
  #periodicTimer: Timer | undefined
  #pauseMs = FIRST_PAUSE_MS
  #closing = false
  #closed: Promise<void> | undefined
  #onIdle: (() => void) | undefined
  /** Failures that the breaker has to process first. */
  #waitingForBreaker = 0
  readonly #pollSoon = nextTickBatch(() => void this.#poll())

  constructor(options: WorkerOptions<Data, Result>) {
    this.id = options.id
    this.#options = options
    const { clock, settings, store, ref, jobLane } = options
    const { leaseMs, resultMs, deadMs, uncountedTurns } = settings
    this.#endSettings = { resultUs: toUs(resultMs), deadUs: toUs(deadMs), uncountedTurns }
    this.#finisher = new Finisher({
      clock,
      leaseMs,
      send: async (ends) => {
        const { breaker } = jobLane
        return await store.finish({ ...ref, ...this.#endSettings, ends, breaker })
      },
      onFinished: (end, finished) => this.#onFinished(end, finished),
    })
    this.#leases = new Leases({
      clock,
      leaseMs,
      running: this.#running,
      extend: async (leases) => await store.extend({ ...ref, leaseUs: toUs(leaseMs), leases }),
    })
    const wake = () => {
      this.#counts.wakeups++
      void this.#poll()
    }
    this.#stopListening = store.onWake(this.id, wake, () => void this.#poll())
    this.#unwatch = store.watch({
      onChange: ({ kind, guard, queue, id }) => {
        if (kind !== 'cancel' || guard !== ref.guard || queue !== ref.queue) return
        this.#running.get(id)?.stop('cancelled')
      },
      onGap: () => this.#leases.check(),
    })
    this.#pollPeriodically()
    this.#pollSoon()
  }

  snapshot(): WorkerSnapshot {
    return { ...this.#counts, active: this.#running.size }
  }

  async close({ graceMs }: { graceMs: number }): Promise<void> {
    this.#closed ??= this.#drain()
    const graceTimer = this.#options.clock.schedule(graceMs, () => {
      for (const job of this.#running.values()) job.stop('closed')
    })
    try {
      await this.#closed
    } finally {
      graceTimer.cancel()
    }
  }

  async #drain(): Promise<void> {
    this.#closing = true
    this.#stopListening()
    this.#pollTimer?.cancel()
    this.#busyTimer?.cancel()
    this.#periodicTimer?.cancel()
    while (this.#running.size > 0 || this.#reserving || this.#waitingForBreaker > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#leases.close()
    this.#unwatch()
    await this.#finisher.drain()
    this.#options.onClosed()
  }

  /** One round trip at a time. Results of jobs that have ended travel with it. */
  async #poll(): Promise<void> {
    if (this.#closing) return void this.#finisher.send()
    if (this.#reserving) {
      this.#wokenDuringRequest = true
      return
    }
    const wanted = this.#wanted()
    if (wanted === 0 && !this.#isPollDue) return void this.#finisher.send()
    const roundTrip = this.#options.jobLane.prepare(wanted)
    if (roundTrip === undefined) {
      this.#pollAfter(this.#pause())
      return void this.#finisher.send()
    }
    this.#reserving = true
    this.#counts.polls++
    this.#isPollDue = false
    const again = await this.#reserve(roundTrip, wanted)
    this.#reserving = false
    if (this.#closing) return this.#onIdle?.()
    const woken = this.#wokenDuringRequest
    this.#wokenDuringRequest = false
    if (again || woken) void this.#poll()
    else void this.#finisher.send()
  }

  #wanted(): number {
    const { concurrency, jobLane } = this.#options
    const unused = concurrency - this.#running.size
    if (unused <= 0) return 0
    const { pausedMs } = jobLane
    if (pausedMs > 0) {
      this.#pollWhenFree(pausedMs)
      return 0
    }
    const free = Math.min(unused, jobLane.free, MOST_PER_ROUND_TRIP)
    if (free === 0) this.#pollWhenFree()
    return free
  }

  /** Checks this pod again, without the store. */
  #pollWhenFree(afterMs = BUSY_MS): void {
    this.#busyTimer?.cancel()
    this.#busyTimer = this.#options.clock.schedule(afterMs, () => void this.#poll())
  }

  /** Returns whether to send the next request immediately. */
  async #reserve(roundTrip: JobRoundTrip, wanted: number): Promise<boolean> {
    const { store, ref, settings, clock, jobLane } = this.#options
    const { leaseMs, agingMs, keep } = settings
    const { deadUs } = this.#endSettings
    const { take, breaker, probes } = roundTrip.about
    const sentMs = clock.now()
    const piggybacked = this.#finisher.piggyback()
    let reply: ReserveReply
    try {
      // One literal: this is the hot path of a worker.
      reply = await store.reserve({
        guard: ref.guard,
        queue: ref.queue,
        lifeUs: ref.lifeUs,
        worker: this.id,
        wanted,
        leaseUs: toUs(leaseMs),
        parkUs: toUs(PARK_MS),
        agingUs: toUs(agingMs),
        deadUs,
        take,
        keep,
        breaker,
        probes,
        finish: piggybacked && { ends: piggybacked.ends, ...this.#endSettings },
      })
    } catch (error) {
      piggybacked?.lost()
      roundTrip.lost(error)
      this.#pollAfter(this.#pause())
      return false
    }
    this.#pauseMs = FIRST_PAUSE_MS
    piggybacked?.arrived(reply.finished)
    const permitsOfJobs = roundTrip.arrived(reply)
    const late = clock.now() - sentMs > jobLane.useWithinMs
    for (const [index, job] of reply.jobs.entries()) {
      const permits = permitsOfJobs[index] as Permits
      // A permit used this late could exceed the vendor's window.
      if (late || this.#closing) this.#giveUp(job, permits, { kind: 'returned', text: '' })
      else this.#start(job, permits, sentMs + leaseMs)
    }
    if (reply.waitUs > 0) {
      const waitMs = Math.ceil(reply.waitUs / 1_000) + TIMER_MARGIN_MS
      this.#expectedByStoreMs = clock.now() + waitMs
      this.#pollAfter(waitMs)
    }
    return reply.blocked === 'no' && (wanted > 0 || reply.jobs.length > 0)
  }

  #start(reserved: ReservedJob, permits: Permits, leaseEndsMs: number): void {
    const { jobLane, handler } = this.#options
    this.#counts.taken++
    let job: RunningJob<Data, Result>
    try {
      job = new RunningJob<Data, Result>(
        reserved,
        permits,
        leaseEndsMs,
        (ended, ending) => this.#ended(ended, ending),
        () => this.#leases.progressed(),
      )
    } catch (error) {
      return this.#giveUp(reserved, permits, {
        kind: 'dead',
        text: `invalid job data: ${errorTextOf(error)}`,
      })
    }
    this.#running.set(job.id, job)
    this.#leases.begin()
    const { attempt, leftMs, signal, priority, tenant } = job
    jobLane.start<Result>(
      (context) => handler(job, context) as Result,
      permits,
      { attempt, leftMs, signal, priority, tenant },
      job,
    )
  }

  /** Ends the turn of a job that does not start, and returns its permits. */
  #giveUp({ id, turn }: ReservedJob, permits: Permits, end: Pick<JobEnd, 'kind' | 'text'>): void {
    this.#options.jobLane.giveBack(permits)
    this.#finisher.add({ id, turn, ...end, delayUs: 0, generation: -1, probe: false })
    this.#pollSoon()
  }

  #ended(job: RunningJob<Data, Result>, { kind, text, afterMs }: TurnEnd): void {
    const { id, turn, generation, probe, stopped } = job
    this.#running.delete(id)
    if (stopped === 'lost') {
      this.#counts.lost++
      if (listening()) emit({ type: 'job.lost', name: this.#options.ref.queue, id })
    } else {
      const delayUs = toUs(Math.max(Math.min(afterMs, LONGEST_DELAY_MS), this.#waitMs(job, kind)))
      const end: JobEnd = { id, turn, kind, text, delayUs, generation, probe }
      // Whether a failure counts as an attempt depends on the breaker's state before it.
      if (kind === 'failed' && generation >= 0) this.#addAfterBreaker(end)
      else this.#finisher.add(end)
    }
    this.#pollSoon()
    if (this.#running.size === 0) this.#onIdle?.()
  }

  #addAfterBreaker(end: JobEnd): void {
    this.#waitingForBreaker++
    const add = () => {
      this.#waitingForBreaker--
      this.#finisher.add(end)
      this.#pollSoon()
      this.#onIdle?.()
    }
    void this.#options.jobLane.reported().then(add, add)
  }

  /** Grows with every turn, whether or not it counted as an attempt. */
  #waitMs({ attempt, uncounted }: RunningJob<Data, Result>, kind: JobEnd['kind']): number {
    const { settings, random, jobLane } = this.#options
    if (kind === 'failed') return backoffMs(settings, attempt + uncounted, 0, random)
    return kind === 'released' ? jobLane.pauseAfter(attempt - 1 + uncounted) : 0
  }

  #onFinished(end: JobEnd, finished: Finished | undefined): void {
    const outcome = jobOutcomeOf(end, finished)
    this.#counts[outcome]++
    emitJobOutcome(this.#options.ref.queue, end, outcome)
  }

  /** Polls after `ms`, unless an earlier poll is scheduled. */
  #pollAfter(ms: number): void {
    const { clock } = this.#options
    const dueMs = clock.now() + ms
    if (this.#closing || dueMs >= this.#pollDueMs) return
    this.#pollTimer?.cancel()
    this.#pollDueMs = dueMs
    this.#pollTimer = clock.schedule(ms, () => {
      // Timers may fire slightly early, so the due time is not compared exactly.
      this.#pollDueMs = Number.POSITIVE_INFINITY
      this.#isPollDue = true
      // Other workers rely on a request at the expected time, so an earlier poll does not replace it.
      const leftMs = this.#expectedByStoreMs - clock.now()
      if (leftMs > 0) this.#pollAfter(leftMs)
      void this.#poll()
    })
  }

  #pause(): number {
    const pauseMs = this.#pauseMs
    this.#pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    return pauseMs
  }

  #pollPeriodically(): void {
    const { clock, random } = this.#options
    this.#periodicTimer = clock.schedule(POLL_MS * (0.75 + random() / 2), () => {
      callSafely(this.id, 'poll', () => void this.#poll(), undefined)
      this.#pollPeriodically()
    })
  }
}
