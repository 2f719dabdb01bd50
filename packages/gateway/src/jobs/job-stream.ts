/**
 * A job's changes as server-sent events, until it has ended. Progress and cancel are pushed from every
 * gateway, other changes from this one; for the rest the stream reads the store every second or two.
 */

import type { Clock } from 'spillway'
import type { Timer } from 'spillway/internal'
import type { JobStatus } from 'spillway/shared'
import type { ClientResponse } from '../request/client-http.js'
import { describeJob, hasEnded, type KeptJob, statusOf } from './job-status.js'

const FIRST_POLL_MS = 250
const LONGEST_POLL_MS = 2_000
/** Proxies close silent connections, so a comment is sent after this time without an event. */
const COMMENT_MS = 15_000

export interface JobStreamOptions {
  readonly queue: string
  readonly response: ClientResponse
  /** The job's progress. The whole job is read only if this has changed. */
  jobStatus(): Promise<JobStatus | undefined>
  read(): Promise<KeptJob | undefined>
  /** The gateway shuts down: clients should follow the job through another one. */
  readonly isDraining: () => boolean
  /** Called before the stream ends because the gateway shuts down. */
  onShutdown(): void
  readonly clock: Clock
  onEnd(stream: JobStream): void
}

export class JobStream {
  readonly #options: JobStreamOptions
  #sentKey = ''
  #pollMs = FIRST_POLL_MS
  #timer: Timer | undefined
  #isPolling = false
  #over = false
  #silentMs = 0

  constructor(options: JobStreamOptions, first: KeptJob) {
    this.#options = options
    const { response } = options
    response.once('close', () => this.#end())
    this.#sendStatus(first)
    this.#pollLater()
  }

  /** The job has changed. */
  refresh(): void {
    this.#pollMs = FIRST_POLL_MS
    void this.#poll()
  }

  async #poll(): Promise<void> {
    if (this.#isPolling || this.#over) return
    this.#isPolling = true
    this.#timer?.cancel()
    try {
      const isKnown = await this.#sendChange()
      if (!isKnown) this.#write('gone', '{}')
      if (!isKnown) this.#close()
      else if (!this.#over && this.#options.isDraining()) {
        this.#options.onShutdown()
        this.#close()
      }
    } catch {
      // The store is unreachable; the next poll tries again.
    }
    this.#isPolling = false
    this.#pollLater()
  }

  /** Resolves with whether the job is known. */
  async #sendChange(): Promise<boolean> {
    const { jobStatus, read } = this.#options
    const now = await jobStatus()
    if (now === undefined || statusKey(now) === this.#sentKey) return now !== undefined
    const job = await read()
    if (job !== undefined) this.#sendStatus(job)
    return job !== undefined
  }

  #pollLater(): void {
    if (this.#over) return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.schedule(this.#pollMs, () => void this.#poll())
    this.#silentMs += this.#pollMs
    this.#pollMs = Math.min(2 * this.#pollMs, LONGEST_POLL_MS)
    if (this.#silentMs < COMMENT_MS) return
    this.#silentMs = 0
    this.#options.response.write(': waiting\n\n')
  }

  #sendStatus(job: KeptJob): void {
    if (this.#over) return
    const key = statusKey(job)
    if (key !== this.#sentKey) this.#write(statusOf(job), describeJob(this.#options.queue, job))
    this.#sentKey = key
    if (hasEnded(job)) this.#close()
  }

  #write(event: string, data: string): void {
    if (this.#over) return
    this.#silentMs = 0
    this.#options.response.write(`event: ${event}\ndata: ${data}\n\n`)
  }

  #close(): void {
    if (this.#over) return
    this.#options.response.end()
    this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#timer?.cancel()
    this.#options.onEnd(this)
  }
}

/** The fields whose change is sent as an event. The age of the job is not one of them. */
function statusKey({ state, attempt, progress, error }: JobStatus): string {
  return JSON.stringify([state, attempt, progress, error])
}
