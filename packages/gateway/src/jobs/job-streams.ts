/** Open streams of job changes, and the maximum per caller. */
import { RequestError } from '../response/errors.js'
import type { JobStream } from './job-stream.js'

/** Streams per caller and gateway. Each holds a connection and polls the store. */
export const MOST_STREAMS = 100

export class JobStreams {
  readonly #byJob = new Map<string, Set<JobStream>>()
  readonly #byOwner = new Map<string, number>()

  /** Throws if this caller has too many. Returns a function that releases the stream. */
  enter(owner: string): () => void {
    const open = this.#byOwner.get(owner) ?? 0
    if (open >= MOST_STREAMS) throw tooMany()
    this.#byOwner.set(owner, open + 1)
    return () => {
      const left = (this.#byOwner.get(owner) as number) - 1
      if (left === 0) this.#byOwner.delete(owner)
      else this.#byOwner.set(owner, left)
    }
  }

  add(job: string, stream: JobStream): void {
    this.#byJob.set(job, (this.#byJob.get(job) ?? new Set()).add(stream))
  }

  delete(job: string, stream: JobStream): void {
    const streams = this.#byJob.get(job)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byJob.delete(job)
  }

  /** Called when the job has changed. */
  refresh(job: string): void {
    for (const stream of this.#byJob.get(job) ?? []) stream.refresh()
  }
}

function tooMany(): RequestError {
  const message = `you follow ${MOST_STREAMS} jobs already: end one of these streams, or ask without one`
  return new RequestError({ status: 429, code: 'TOO_MANY_STREAMS', message })
}
