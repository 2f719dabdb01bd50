/** The threads behind a worker bulkhead: a piscina pool, opened when first needed. */
import type { Piscina } from 'piscina'
import { emit, listening } from '../../core/events.js'

/** Longer than a pause between requests, short enough to free memory. */
const IDLE_THREAD_MS = 30_000

export class WorkerThreads {
  readonly #file: string
  readonly #limit: number
  #pool: Promise<Piscina> | undefined
  #opened: Piscina | undefined
  /** Rejects each piece of work that is waiting for a thread or running. */
  readonly #running = new Set<(error: unknown) => void>()

  constructor(file: string, limit: number) {
    this.#file = file
    this.#limit = limit
  }

  async run<T>(input: unknown, task: string, signal: AbortSignal): Promise<T> {
    this.#pool ??= this.#open()
    const pool = await this.#pool
    signal.throwIfAborted()
    return new Promise<T>((resolve, reject) => {
      const settle = () => this.#running.delete(reject)
      this.#running.add(reject)
      pool.run(input, { name: task, signal }).then(resolve, reject).finally(settle)
    })
  }

  async close(): Promise<void> {
    // A pool that could not be opened needs no closing.
    const pool = await this.#pool?.catch(() => undefined)
    await pool?.destroy()
  }

  async #open(): Promise<Piscina> {
    const { Piscina } = await import('piscina').catch((cause) => {
      throw new Error('worker bulkheads need the package piscina: npm install piscina', { cause })
    })
    const pool = new Piscina({
      filename: this.#file,
      minThreads: 0,
      maxThreads: this.#limit,
      idleTimeout: IDLE_THREAD_MS,
    })
    this.#opened = pool
    pool.on('error', (error) => this.#onError(pool, error))
    return pool
  }

  /**
   * A thread died without work: it could not load its file, or crashed afterwards. If no thread is
   * left, waiting work would never run. The next call opens a new pool.
   */
  #onError(pool: Piscina, error: unknown): void {
    if (listening()) emit({ type: 'callback.failed', name: this.#file, callback: 'file', error })
    if (pool.threads.length > 0 || pool !== this.#opened) return
    this.#pool = undefined
    this.#opened = undefined
    for (const fail of this.#running) fail(error)
    this.#running.clear()
    pool.destroy().catch(() => {})
  }
}
