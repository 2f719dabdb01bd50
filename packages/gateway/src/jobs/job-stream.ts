/**
 * A job's changes as server-sent events, until it has ended. What this gateway does to it is told at
 * once; what others do, within a second or two, because then somebody has to look.
 */
import type { ServerResponse } from 'node:http'
import { describeJob, hasEnded, type KeptJob, statusOf } from './job-status.js'

const FIRST_LOOK_MS = 250
const LONGEST_LOOK_MS = 2_000
/** A comment so often: silence trips proxies. */
const COMMENT_MS = 15_000

export interface JobStreamOptions {
  readonly queue: string
  readonly response: ServerResponse
  read(): Promise<KeptJob | undefined>
  /** This gateway goes away: whoever reads should come back, to another one. */
  readonly isDraining: () => boolean
  onEnd(): void
}

export class JobStream {
  readonly #options: JobStreamOptions
  #told = ''
  #lookMs = FIRST_LOOK_MS
  #timer: NodeJS.Timeout | undefined
  #looking = false
  #over = false
  #silentMs = 0

  constructor(options: JobStreamOptions, first: KeptJob) {
    this.#options = options
    const { response } = options
    response.once('close', () => this.#end())
    this.#tell(first)
    this.#later()
  }

  /** Something has happened to it. */
  nudge(): void {
    this.#lookMs = FIRST_LOOK_MS
    void this.#look()
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#over) return
    this.#looking = true
    clearTimeout(this.#timer)
    try {
      const job = await this.#options.read()
      if (job === undefined) this.#write('gone', '{}')
      else this.#tell(job)
      if (job === undefined || this.#options.isDraining()) this.#close()
    } catch {
      // The store is away; the next look may find it.
    }
    this.#looking = false
    this.#later()
  }

  #later(): void {
    if (this.#over) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), this.#lookMs)
    this.#silentMs += this.#lookMs
    this.#lookMs = Math.min(2 * this.#lookMs, LONGEST_LOOK_MS)
    if (this.#silentMs < COMMENT_MS) return
    this.#silentMs = 0
    this.#options.response.write(': waiting\n\n')
  }

  #tell(job: KeptJob): void {
    if (this.#over) return
    // Its age is no news.
    const news = JSON.stringify([job.state, job.attempt, job.progress, job.error])
    if (news !== this.#told) this.#write(statusOf(job), describeJob(this.#options.queue, job))
    this.#told = news
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
    clearTimeout(this.#timer)
    this.#options.onEnd()
  }
}
