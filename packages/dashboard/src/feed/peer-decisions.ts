/**
 * Reads decisions of the other processes of this pod, such as the workers of a gateway, while the dashboard has
 * readers. Each process has its own log, and only one serves the dashboard.
 */
import type { Clock } from 'spillway'
import type { Timer } from 'spillway/internal'
import type { KnownRequest } from '../requests/request-log.js'
import type { Decision, Decisions } from '../wire/decisions.js'

/** The decisions of one process after a cursor. */
export interface DecisionPage {
  /** Cursor of the next page, opaque to other processes. */
  cursor: string
  /** Number of all decisions since the last page, including those without a record. */
  seen: number
  /** Recorded decisions. */
  records: readonly Decision[]
}

/** The decisions of all other processes, after a cursor for each. */
export interface PeerDecisions {
  /** By process, with names chosen by the peers. */
  cursors: Readonly<Record<string, string>>
  /** Number of all decisions since the cursors, including those without a record. */
  seen: number
  /** Newest first. */
  records: readonly Decision[]
}

/** The other processes of this pod. */
export interface DashboardPeers {
  /** Finds a request in the other processes, with their `dashboard.find()`. Default: they are not searched. */
  find?(requestId: string): Promise<readonly KnownRequest[]>
  /** Their decisions after these cursors. A process without a cursor returns its latest ones. */
  decisions(cursors: Readonly<Record<string, string>>): Promise<PeerDecisions>
}

const READ_INTERVAL_MS = 300

export class PeerDecisionWatch {
  readonly #peers: DashboardPeers
  readonly #clock: Clock
  readonly #onDecisions: (decisions: Decisions) => void
  #cursors: Readonly<Record<string, string>> = {}
  #timer: Timer | undefined

  constructor(peers: DashboardPeers, clock: Clock, onDecisions: (decisions: Decisions) => void) {
    this.#peers = peers
    this.#clock = clock
    this.#onDecisions = onDecisions
  }

  start(): void {
    if (this.#timer === undefined) this.#schedule(0)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** The next request follows the answer to the last one, so a slow peer has at most one. */
  #schedule(delayMs: number): void {
    const timer = this.#clock.schedule(delayMs, async () => {
      await this.#read(timer)
      if (this.#timer === timer) this.#schedule(READ_INTERVAL_MS)
    })
    timer.unref()
    this.#timer = timer
  }

  async #read(timer: Timer): Promise<void> {
    const answer = await this.#peers.decisions(this.#cursors).catch(() => undefined)
    // Without a reader the cursors stay, so that the next reader gets all decisions since then.
    if (answer === undefined || this.#timer !== timer) return
    const { cursors, seen } = answer
    this.#cursors = cursors
    const records = answer.records.toReversed()
    if (records.length === 0) return
    this.#onDecisions({ seen, records })
  }
}
