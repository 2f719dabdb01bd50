/**
 * The vendor, in this process. Up to `servers` calls run side by side at full speed. Beyond that
 * they share the servers, so that each call gets slower; switching between them costs time, so that the total
 * throughput falls, too. Far beyond, it refuses calls, and it aborts calls that take too long.
 */
import type { Clock, Random, Timer } from 'spillway/testing'

export interface VendorOptions {
  /** Number of calls that it processes at once at full speed. */
  servers: number
  /** Work in one call, on average: it takes this long while there is a server for each. */
  workMs: number
  clock: Clock
  random: Random
}

export interface Vendor {
  /** Calls it is working on. */
  readonly inFlight: number
  readonly peakInFlight: number
  /** Calls ever made. */
  readonly calls: number
  /** An abort ends the work. */
  call(signal?: AbortSignal): Promise<string>
  /** Drops everything; later calls fail. */
  close(): void
}

export class VendorError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** Slowdown by switching between calls, for each multiple of `servers` in flight beyond the first. */
const JUGGLING = 0.05
/** The vendor begins to refuse calls at this multiple of `servers`. */
const REFUSES_FROM = 5
/** It never refuses more than this share of calls. */
const MOST_REFUSED = 0.5
/** Calls that take longer are aborted. */
const CUT_OFF_MS = 3_000
/** Share of calls that fail without overload. */
const BLIPS = 0.005

/** Progress of a call per millisecond, while `load` calls share each server. */
function speedAt(load: number): number {
  return load <= 1 ? 1 : 1 / (load * (1 + JUGGLING * (load - 1)))
}

function refusedShareAt(load: number): number {
  return Math.min(Math.max(0, (load - REFUSES_FROM) / 50), MOST_REFUSED)
}

interface Job {
  /** Done when a job present from the beginning would have received this much work. */
  doneAt: number
  cutOff: Timer
  succeed(): void
  fail(error: unknown): void
}

/** Position of a job in this sorted list, by binary search, because there may be thousands. */
function placeFor(doneAt: number, jobs: readonly Job[]): number {
  let from = 0
  let to = jobs.length
  while (from < to) {
    const middle = (from + to) >> 1
    if ((jobs[middle] as Job).doneAt <= doneAt) from = middle + 1
    else to = middle
  }
  return from
}

/** A smaller amount of work is a rounding error. */
const NOTHING_MS = 1e-6

export function createVendor({ servers, workMs, clock, random }: VendorOptions): Vendor {
  /** Sorted by the time at which they are done. */
  const jobs: Job[] = []
  /** Work that a job present from the beginning would have received, and the time of this calculation. */
  let worked = 0
  let reckonedMs = clock.now()
  let next: Timer | undefined
  let peakInFlight = 0
  let calls = 0
  let closed = false

  const load = () => jobs.length / servers

  function reckon(): void {
    const nowMs = clock.now()
    worked += (nowMs - reckonedMs) * speedAt(load())
    reckonedMs = nowMs
  }

  function armNext(): void {
    next?.cancel()
    const first = jobs[0]
    next = first && clock.schedule((first.doneAt - worked) / speedAt(load()), finishDone)
  }

  function finishDone(): void {
    reckon()
    while (jobs[0] !== undefined && jobs[0].doneAt <= worked + NOTHING_MS) {
      const job = jobs.shift() as Job
      job.cutOff.cancel()
      if (random() < BLIPS) job.fail(new VendorError(500, 'something went wrong'))
      else job.succeed()
    }
    armNext()
  }

  function add(job: Job): void {
    reckon()
    job.doneAt += worked
    jobs.splice(placeFor(job.doneAt, jobs), 0, job)
    peakInFlight = Math.max(peakInFlight, jobs.length)
    armNext()
  }

  function drop(job: Job, error: unknown): void {
    const place = jobs.indexOf(job)
    if (place === -1) return
    reckon()
    jobs.splice(place, 1)
    job.cutOff.cancel()
    job.fail(error)
    armNext()
  }

  return {
    get inFlight() {
      return jobs.length
    },
    get peakInFlight() {
      return peakInFlight
    },
    get calls() {
      return calls
    },
    async call(signal) {
      calls++
      if (closed || random() < refusedShareAt(load())) throw new VendorError(503, 'too busy')
      return new Promise((resolve, reject) => {
        const job: Job = {
          doneAt: workMs * (0.7 + 0.6 * random()),
          cutOff: clock.schedule(CUT_OFF_MS, () =>
            drop(job, new VendorError(504, 'took too long')),
          ),
          succeed: () => resolve('answer'),
          fail: reject,
        }
        signal?.addEventListener('abort', () => drop(job, signal.reason), { once: true })
        add(job)
      })
    },
    close() {
      closed = true
      for (const job of [...jobs]) drop(job, new VendorError(503, 'closed'))
    },
  }
}
