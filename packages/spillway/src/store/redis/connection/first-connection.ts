/**
 * The time until a Redis store has its first connection. Commands without an outage rule wait for
 * it. If no connection is made, one process warning and one event report it, because a wrong URL
 * otherwise looks like a store that grants everything.
 */

import { readableTime, SpillwayError } from '../../../core/errors.js'
import { emit, listening } from '../../../core/events.js'
import { type Duration, duration, validate } from '../../../core/options/checks.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import { currentDeadline } from '../../../core/time/deadline.js'
import { sleep } from '../../../core/time/sleep.js'
import { RedisSetupError, UNREACHABLE_CODE, type Warn } from '../setup/setup-error.js'
import { messageOf } from './failure-kind.js'

export interface FirstConnectionOptions {
  client: { readonly ready: boolean; readonly problem: unknown }
  clock: Clock
  /** The servers as URLs, without logins. */
  url: string
  warn: Warn
  /** Of several servers some may be down although the store is reachable. */
  severalServers: boolean
}

/**
 * How a command waits. `brief`: until a connection attempt has failed, about 1 s at most; used
 * where there is an outage rule, or for a report that is useful without the store. `patient`: about
 * 5 s, through failed attempts. After one command has waited without success the others fail at
 * once, so that a store that is down does not delay them.
 */
export type WaitMode = 'brief' | 'patient'

/**
 * Numbers of checks and not times, because a process that is busy starting needs longer to connect.
 */
const MAX_CHECKS = { brief: 200, patient: 1_000 } as const
const CHECK_MS = 5
/**
 * Several checks and not one timer, so that a starved process does not report a Redis that is about
 * to connect.
 */
const WATCH_MS = 50
/** Without a connection and without an error for this long, the store counts as unreachable. */
const UNREACHABLE_MS = 5_000
const CONNECTED_MS = 5_000

/** With these codes no TLS handshake has begun. */
const UNRELATED_TO_TLS: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

const readTimeout = duration({ min: 0 })

export class FirstConnection {
  readonly #options: FirstConnectionOptions
  #timer: Timer | undefined
  #made = false
  #closed = false
  #reported = false
  /** A command could not be sent. */
  #missed = false
  readonly #sinceMs: number
  readonly #exhausted = { brief: false, patient: false }

  constructor(options: FirstConnectionOptions) {
    this.#options = options
    this.#sinceMs = options.clock.now()
    this.#watch(UNREACHABLE_MS / WATCH_MS)
  }

  /** Notices a connection that is made and lost again before any command needs it. */
  #watch(checksLeft: number): void {
    if (this.made || this.#closed) return
    if (checksLeft === 0) return this.#reportIfMissing()
    this.#timer = this.#options.clock.schedule(WATCH_MS, () => this.#watch(checksLeft - 1))
    this.#timer.unref()
  }

  get made(): boolean {
    this.#made ||= this.#options.client.ready
    return this.#made
  }

  /** Resolves when there is a connection, or when there is no point in waiting longer. */
  async wait(waitMode: WaitMode): Promise<void> {
    const { clock, client } = this.#options
    const deadline = currentDeadline()
    for (let checks = 0; !this.made && !this.#closed && !this.#exhausted[waitMode]; checks++) {
      if (deadline?.expired || (waitMode === 'brief' && client.problem !== undefined)) break
      if (checks === MAX_CHECKS[waitMode]) this.#exhausted[waitMode] = true
      // Keeps the process alive, because a caller waits for this.
      else await sleep(clock, CHECK_MS)
    }
    this.#missed ||= !this.made && !this.#closed
  }

  /** A command could not be sent. A failed attempt to connect is reported without further delay. */
  missed(): void {
    const { client, severalServers } = this.#options
    if (client.problem !== undefined && !severalServers) this.#reportIfMissing()
  }

  /** Rejects with STORE_UNAVAILABLE if there is no connection within `timeoutMs`. */
  async connected(timeoutMs: Duration = CONNECTED_MS): Promise<void> {
    const { clock, client } = this.#options
    const limitMs = validate('connected.timeoutMs', timeoutMs, readTimeout)
    const lastMs = clock.now() + limitMs
    while (!client.ready) {
      if (this.#closed || clock.now() >= lastMs) throw this.#error(limitMs)
      await sleep(clock, Math.min(CHECK_MS, lastMs - clock.now()))
    }
  }

  /** A command was needed and not sent, or the connection failed: reported now, because a short program ends here. */
  close(): void {
    if (this.#missed || this.#options.client.problem !== undefined) this.#reportIfMissing()
    this.#closed = true
    this.#timer?.cancel()
  }

  #reportIfMissing(): void {
    if (this.made || this.#closed || this.#reported) return
    this.#reported = true
    const { client, url, warn } = this.#options
    const why = this.#why()
    // A server that answers but cannot be used has its own warning.
    if (!(client.problem instanceof RedisSetupError)) {
      warn(
        `the Redis store at ${url} is unreachable: ${why}. Check the url of redisStore (gateway: REDIS_URL, or redis in spillway.yaml)${this.#hint()}`,
        UNREACHABLE_CODE,
      )
    }
    if (listening()) emit({ type: 'store.unreachable', name: 'redis', url, why })
  }

  #why(): string {
    const { client } = this.#options
    if (this.#closed) return 'the store is closed'
    // Some messages of drivers end with a full stop, and a sentence follows.
    if (client.problem !== undefined) return messageOf(client.problem).replace(/\.$/, '')
    return `no connection within ${readableTime(this.#options.clock.now() - this.#sinceMs)}`
  }

  /** A server without TLS answers a TLS handshake with an error, or not at all. */
  #hint(): string {
    const { client, url } = this.#options
    const { code } = Object(client.problem) as { code?: unknown }
    if (!url.startsWith('rediss:') || UNRELATED_TO_TLS.has(code)) return ''
    return ': rediss:// means TLS; use redis:// for a server without TLS'
  }

  #error(limitMs: number): SpillwayError {
    const { client, url } = this.#options
    const why =
      this.#closed || client.problem !== undefined ? this.#why() : `no connection in ${limitMs} ms`
    return new SpillwayError({
      code: 'STORE_UNAVAILABLE',
      stage: 'call',
      scope: 'shared',
      details: { name: 'redis', url, why, limitMs },
      explain: (details) => `the Redis store at ${details.url} is unreachable: ${details.why}`,
      cause: client.problem,
    })
  }
}
