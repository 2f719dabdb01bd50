/**
 * Keeps one connection up: connects, and after every loss connects again, with growing, jittered pauses. Each attempt
 * creates a client and each loss discards it. Clients with automatic reconnects ignore `close()` during their pauses
 * and can hang in a handshake forever.
 */

import type { Random } from '../../../core/random.js'
import type { Clock, Timer } from '../../../core/time/clock.js'

/** A client for one connection. */
export interface Dialed<T> {
  readonly client: T
  /** Resolves when the connection can be used. */
  open(): Promise<unknown>
  /** Releases everything at once, in any state. */
  drop(): void
}

export interface RedialOptions<T> {
  /** Creates a client that calls `lost` when its connection breaks. Does not connect yet. */
  dial: (lost: (problem: unknown) => void) => Promise<Dialed<T>> | Dialed<T>
  clock: Clock
  random: Random
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
/** For the whole handshake: a server that accepts a connection may still never reply. */
const OPEN_MS = 5_000
/**
 * Several short timers instead of one long one. A process short of CPU time, for example during its start, then does
 * not give up a connection that is about to open.
 */
const OPEN_CHECK_MS = 250

interface Dialling<T> {
  readonly kind: 'dialling'
  dialed: Dialed<T> | undefined
  timer: Timer | undefined
}

type State<T> =
  | Dialling<T>
  | { kind: 'open'; dialed: Dialed<T> }
  | { kind: 'waiting'; timer: Timer }
  | { kind: 'closed' }

export class Redial<T> {
  /** Why there is no connection, if known. */
  problem: unknown
  readonly #options: RedialOptions<T>
  #state!: State<T>
  #failures = 0

  constructor(options: RedialOptions<T>) {
    this.#options = options
    this.#dial()
  }

  /** The client whose connection is up. */
  get client(): T | undefined {
    return this.#state.kind === 'open' ? this.#state.dialed.client : undefined
  }

  /** Drops the connection, or the attempt, and dials again. */
  hangUp(problem: unknown): void {
    const { kind } = this.#state
    if (kind === 'open' || kind === 'dialling') this.#lost(this.#state, problem)
  }

  /** Dials now instead of after the pause. */
  dialNow(): void {
    if (this.#state.kind !== 'waiting') return
    this.#state.timer.cancel()
    this.#failures = 0
    this.#dial()
  }

  close(): void {
    this.#leave()
    this.#state = { kind: 'closed' }
  }

  #dial(): void {
    const state: Dialling<T> = { kind: 'dialling', dialed: undefined, timer: undefined }
    this.#state = state
    this.#watch(state, OPEN_MS)
    this.#open(state).catch((problem: unknown) => this.#lost(state, problem))
  }

  #watch(state: Dialling<T>, leftMs: number): void {
    if (leftMs <= 0) return this.#lost(state, new Error(`not connected within ${OPEN_MS} ms`))
    state.timer = this.#options.clock.schedule(OPEN_CHECK_MS, () =>
      this.#watch(state, leftMs - OPEN_CHECK_MS),
    )
    state.timer.unref()
  }

  async #open(state: Dialling<T>): Promise<void> {
    let current: State<T> = state
    const dialed = await this.#options.dial((problem) => this.#lost(current, problem))
    if (this.#state !== state) return dialed.drop()
    state.dialed = dialed
    await dialed.open()
    if (this.#state !== state) return dialed.drop()
    state.timer?.cancel()
    current = { kind: 'open', dialed }
    this.#state = current
    this.#failures = 0
    this.problem = undefined
  }

  /** Only the first report about a connection counts. */
  #lost(state: State<T>, problem: unknown): void {
    if (this.#state !== state) return
    this.problem = problem
    this.#leave()
    const timer = this.#options.clock.schedule(this.#pauseMs(), () => this.#dial())
    timer.unref()
    this.#state = { kind: 'waiting', timer }
  }

  #leave(): void {
    const state = this.#state
    if (state.kind === 'dialling' || state.kind === 'waiting') state.timer?.cancel()
    if (state.kind === 'dialling' || state.kind === 'open') state.dialed?.drop()
  }

  /** Half of it is random, so that the pods of a fleet do not reconnect together. */
  #pauseMs(): number {
    const fullMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS)
    return fullMs * (0.5 + 0.5 * this.#options.random())
  }
}
