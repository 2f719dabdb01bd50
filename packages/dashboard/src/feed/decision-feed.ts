/**
 * The decisions for all readers: this process records some of its calls, and those of its peers and of other pods are
 * added. While there are readers, new ones are announced up to ten times a second.
 */
import type { Clock } from 'spillway'
import type { SpillwayInternals, Timer } from 'spillway/internal'
import { DecisionLog } from 'spillway/internal'
import { explainRequest } from '../requests/explain-request.js'
import { FleetExchange } from '../requests/fleet-exchange.js'
import { RequestLog } from '../requests/request-log.js'
import { shown } from '../shown.js'
import type { Decision, Decisions } from '../wire/decisions.js'
import type { Explanation } from '../wire/explain.js'
import { decisionView } from './decision-view.js'
import { type DashboardPeers, type DecisionPage, PeerDecisionWatch } from './peer-decisions.js'
import { RecentDecisions } from './recent-decisions.js'

const FLUSH_MS = 100
/** Number of earlier decisions that a new reader gets. */
const EARLIER_DECISIONS = 100
const MOST_IN_A_MESSAGE = 50
/** After another process has requested decisions, more are recorded for this time. */
const WATCH_MS = 5_000

export interface DecisionFeedOptions {
  readonly inside: SpillwayInternals
  readonly peers: DashboardPeers | undefined
  /** Id of this process, for cursors. */
  readonly boot: string
  readonly hasReaders: () => boolean
  readonly onDecisions: (decisions: Decisions) => void
}

export class DecisionFeed {
  readonly log: DecisionLog
  /** The requests of this process. */
  readonly requests: RequestLog
  readonly #options: DecisionFeedOptions
  readonly #clock: Clock
  readonly #peers: PeerDecisionWatch | undefined
  /** Decisions of other processes and pods. */
  readonly #others = new RecentDecisions()
  readonly #exchange: FleetExchange
  #nextId = 1
  #seen = 0
  #timer: Timer | undefined
  /** Runs for `WATCH_MS` after the last question of another process. */
  #watchTimer: Timer | undefined

  constructor(options: DecisionFeedOptions) {
    this.#options = options
    const { inside, peers, hasReaders } = options
    const { clock, membership, store } = inside
    this.#clock = clock
    const log = new DecisionLog(clock)
    this.log = log
    this.#peers = peers && new PeerDecisionWatch(peers, clock, (each) => this.#fromOthers(each))
    const views = (records: ReturnType<DecisionLog['since']>) => this.#views(records)
    this.requests = new RequestLog({ clock, log, pod: membership.pod, views })
    this.#exchange = new FleetExchange({
      store,
      clock,
      membership,
      hasReaders,
      since: (id) => {
        this.#watchForOthers()
        return this.#views(log.since(id, MOST_IN_A_MESSAGE))
      },
      find: (requestId) => this.requests.find(requestId),
      onDecisions: (records) => this.#fromOthers({ seen: records.length, records: [...records] }),
    })
  }

  get hasPeers(): boolean {
    return this.#peers !== undefined
  }

  /** Own decisions before this id were announced. */
  get nextId(): number {
    return this.#nextId
  }

  /** Called for the first reader. */
  start(): void {
    this.log.watched = true
    this.#nextId = this.log.nextId
    this.#seen = this.log.seen
    this.#flushLater()
    this.#peers?.start()
  }

  /** Called after the last reader has left. */
  stop(): void {
    this.log.watched = this.#watchTimer !== undefined
    this.#peers?.stop()
    this.#timer?.cancel()
    this.#timer = undefined
  }

  close(): void {
    this.#timer?.cancel()
    this.#watchTimer?.cancel()
    this.#peers?.stop()
    this.#exchange.close()
  }

  /** Decisions that a reader does not have; `has`: up to which id, and until when. */
  since(has: { decision: number; at: number } | undefined): Decision[] {
    const own = this.log
      .since(has?.decision ?? 1, EARLIER_DECISIONS)
      .filter(({ id }) => id < this.#nextId)
    return [...this.#views(own), ...this.#others.since(has?.at ?? 0)]
  }

  /** Decisions of this process after a cursor, for the process that serves the dashboard. */
  page(cursor: string | undefined): DecisionPage {
    this.#watchForOthers()
    const { nextId, seen } = this.log
    const { boot: ownBoot } = this.#options
    const [boot, from, seenBefore] = (cursor ?? '').split('.')
    const isOwn = boot === ownBoot
    const records = this.log.since(isOwn ? Number(from) : 1, EARLIER_DECISIONS)
    return {
      cursor: `${ownBoot}.${nextId}.${seen}`,
      seen: isOwn ? seen - Number(seenBefore) : records.length,
      records: this.#views(records),
    }
  }

  /** Data of all processes and pods about a request. */
  explain(requestId: string): Promise<Explanation> {
    const { inside, peers } = this.#options
    return explainRequest(requestId, { own: this.requests, peers, ...inside })
  }

  #flushLater(): void {
    this.#timer = this.#clock.schedule(FLUSH_MS, () => {
      this.#flushLater()
      this.#flush()
    })
    this.#timer.unref()
  }

  #flush(): void {
    const records = this.log.since(this.#nextId, MOST_IN_A_MESSAGE)
    if (records.length === 0) return
    const seen = this.log.seen - this.#seen
    this.#nextId = this.log.nextId
    this.#seen = this.log.seen
    this.#options.onDecisions({ seen, records: this.#views(records) })
  }

  #fromOthers({ seen, records }: Decisions): void {
    const fresh = this.#others.add(records, Math.round(this.#clock.wallMs()))
    if (fresh.length > 0) this.#options.onDecisions({ seen, records: fresh })
  }

  /** Another process reads the decisions of this one. */
  #watchForOthers(): void {
    this.log.watched = true
    this.#watchTimer?.cancel()
    this.#watchTimer = this.#clock.schedule(WATCH_MS, () => {
      this.#watchTimer = undefined
      this.log.watched = this.#options.hasReaders()
    })
    this.#watchTimer.unref()
  }

  #views(records: ReturnType<DecisionLog['since']>): Decision[] {
    const aheadMs = this.#clock.wallMs() - this.#clock.now()
    const pod = shown(this.#options.inside.membership.pod)
    return records.map((record) => decisionView(record, pod, aheadMs))
  }
}
