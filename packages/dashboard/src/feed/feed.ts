/**
 * The feed, built once for all readers. Without readers it only records the last hour: a snapshot of each guard per
 * second. The store is read only for readers.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from 'spillway'
import { ORDER } from 'spillway'
import type { PodStatus, SharedGuard, SpillwayInternals, Timer } from 'spillway/internal'
import { ownStatus, readProcess, VERSION } from 'spillway/internal'
import { readActNote } from '../act-note.js'
import type { NotedRequest } from '../requests/noted-request.js'
import type { KnownRequest } from '../requests/request-log.js'
import { shown } from '../shown.js'
import type { Act, ActNote } from '../wire/acts.js'
import type { Explanation } from '../wire/explain.js'
import type { Transition } from '../wire/guards.js'
import type { DemoState, Hello } from '../wire/hello.js'
import type { PodColumn } from '../wire/history.js'
import type { Messages } from '../wire/messages.js'
import { DecisionFeed } from './decision-feed.js'
import { FleetWatch } from './fleet-watch.js'
import { guardCard } from './guard-card.js'
import { guardTick } from './guard-tick.js'
import { GuardWatch } from './guard-watch.js'
import { HistoryOf, KEEPS, POD_COLUMNS, type Point } from './history.js'
import { LaneFigureBook } from './lane-figures.js'
import type { DashboardPeers, DecisionPage } from './peer-decisions.js'
import { queueTicks } from './queue-tick.js'
import type { FeedReader } from './reader.js'
import { StoreState } from './store-state.js'

const TICK_MS = 1_000
/** Callers may choose guard names, so there is a limit. */
const MOST_GUARDS = 200
const EARLIER_ACTS = 20

export interface FeedOptions {
  inside: SpillwayInternals
  may: readonly Act['act'][]
  demo: (() => DemoState) | undefined
  peers: DashboardPeers | undefined
}

/** Messages that describe the current state. New and returning readers get the last one of each. */
type StateMessage = 'fleet' | 'guards' | 'jobQueues'

export class Feed {
  readonly #options: FeedOptions
  readonly #clock: Clock
  readonly #boot = randomBytes(6).toString('base64url')
  readonly #decisions: DecisionFeed
  readonly #figures: LaneFigureBook
  readonly #fleet: FleetWatch
  readonly #storeState: StoreState
  readonly #podHistory = new HistoryOf(POD_COLUMNS)
  readonly #readers = new Set<FeedReader>()
  /** Readers that are still receiving the history. */
  readonly #receivingHistory = new Set<FeedReader>()
  readonly #acts: ActNote[] = []
  readonly #last = new Map<StateMessage, string>()
  readonly #stopMeeting: () => void
  #watches: GuardWatch[] = []
  #sampledMs: number
  #sinceMs = TICK_MS
  #isRefreshing = false
  /** Grows whenever the content of `hello` changes. */
  #helloVersion = 0
  #closed = false
  #timer: Timer

  constructor(options: FeedOptions) {
    this.#options = options
    const { inside, peers } = options
    const { clock, membership } = inside
    this.#clock = clock
    this.#decisions = new DecisionFeed({
      inside,
      peers,
      boot: this.#boot,
      hasReaders: () => this.#readers.size > 0,
      onDecisions: (each) => this.#broadcast('decisions', each),
    })
    this.#figures = new LaneFigureBook(clock)
    this.#fleet = new FleetWatch(membership, clock, (text) => this.#onNote(text))
    this.#storeState = new StoreState()
    this.#sampledMs = clock.now()
    this.#meetGuards()
    // Immediately instead of with the next tick, so that no decision of a new guard is missed.
    this.#stopMeeting = inside.onGuard(() => {
      if (this.#meetGuards()) this.#sendHelloToAll()
    })
    this.#timer = this.#schedule()
  }

  get readers(): number {
    return this.#readers.size + this.#receivingHistory.size
  }

  get closed(): boolean {
    return this.#closed
  }

  /** `lastId`: the last event of a reader that returns. */
  async attach(reader: FeedReader, lastId: string | undefined): Promise<void> {
    const seen = this.#readId(lastId)
    const [helloVersion, beganMs, beganAt] = [
      this.#helloVersion,
      this.#clock.now(),
      this.#clock.wallMs(),
    ]
    this.#receivingHistory.add(reader)
    try {
      this.#sendHello(reader)
      for (const history of this.#histories(seen?.at ?? 0)) {
        if (reader.ended) return
        this.#send(reader, 'history', history)
        await reader.drained(this.#clock)
      }
    } finally {
      this.#receivingHistory.delete(reader)
    }
    if (reader.ended || this.#closed) return
    // Synchronous from here to the end of the history: later messages go to all readers, including
    // this one.
    this.#readers.add(reader)
    if (this.#readers.size === 1) this.#beginWatching()
    if (helloVersion !== this.#helloVersion) this.#sendHello(reader)
    if (this.#sampledMs > beganMs) {
      for (const history of this.#histories(beganAt)) this.#send(reader, 'history', history)
    }
    this.#sendCurrentState(reader)
    this.#sendDecisions(reader, seen)
    for (const note of this.#acts) this.#send(reader, 'act', note)
    // The store was not read before.
    if (!this.#last.has('fleet')) await this.#refreshFleet()
  }

  detach(reader: FeedReader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return
    this.#decisions.stop()
    this.#last.clear()
  }

  /** Decisions of this process after a cursor, for the process that serves the dashboard. */
  decisions(cursor: string | undefined): DecisionPage {
    return this.#decisions.page(cursor)
  }

  noteRequest(request: NotedRequest): void {
    this.#decisions.requests.note(request)
  }

  /** Data of this process about a request. */
  find(requestId: string): KnownRequest {
    return this.#decisions.requests.find(requestId)
  }

  /** Data of all processes and pods about a request. */
  explain(requestId: string): Promise<Explanation> {
    return this.#decisions.explain(requestId)
  }

  /** An operator has acted. */
  acted(note: ActNote): void {
    this.#options.inside.note(JSON.stringify(note))
    this.#publishAct(note)
  }

  /** An operator has acted on another pod. */
  #onNote(text: string): void {
    const note = readActNote(text)
    if (note !== undefined) this.#publishAct(note)
  }

  #publishAct(note: ActNote): void {
    this.#acts.push(note)
    if (this.#acts.length > EARLIER_ACTS) this.#acts.shift()
    this.#broadcast('act', note)
  }

  demoChanged(state: DemoState): void {
    this.#helloVersion++
    this.#broadcast('demo', state)
  }

  close(): void {
    this.#closed = true
    this.#stopMeeting()
    this.#timer.cancel()
    this.#decisions.close()
    for (const reader of [...this.#receivingHistory, ...this.#readers]) reader.end()
    for (const watch of this.#watches) watch.close()
  }

  #schedule(): Timer {
    const timer = this.#clock.schedule(TICK_MS, () => {
      this.#timer = this.#schedule()
      this.#tick()
    })
    timer.unref()
    return timer
  }

  #tick(): void {
    const isChanged = this.#meetGuards()
    this.#sample()
    if (this.#readers.size === 0) return
    for (const reader of this.#readers) {
      if (isChanged || reader.isBack) this.#greetAgain(reader)
    }
    void this.#refreshFleet()
  }

  /** Adds new guards and drops closed ones. Returns whether there were any. */
  #meetGuards(): boolean {
    const guards = this.#options.inside.guards().slice(0, MOST_GUARDS)
    const known = new Map(this.#watches.map((watch) => [watch.guard, watch]))
    if (guards.length === known.size && guards.every((guard) => known.has(guard))) return false
    this.#watches = guards.map((guard) => known.get(guard) ?? this.#watch(guard))
    for (const [guard, watch] of known) if (!guards.includes(guard)) watch.close()
    this.#helloVersion++
    return true
  }

  /** In a function of its own: V8 would keep `known`, and with it all earlier guards, for these callbacks. */
  #watch(guard: SharedGuard): GuardWatch {
    return new GuardWatch(
      guard,
      this.#decisions.log,
      () => this.#clock.wallMs(),
      (each) => this.#onTransition(each),
    )
  }

  /** Sent immediately: a breaker that opens in one pod is shown on every page within a moment. */
  #onTransition(transition: Transition): void {
    this.#broadcast('transition', transition)
  }

  /** Records the last hour. Runs even without readers. */
  #sample(): void {
    const { inside } = this.#options
    const nowMs = this.#clock.now()
    this.#sinceMs = Math.max(1, Math.round(nowMs - this.#sampledMs))
    this.#sampledMs = nowMs
    const at = this.#clock.wallMs()
    const snapshots = this.#watches.map((watch) => watch.sample(at, this.#sinceMs).snapshot)
    const queues = inside.queues().map(({ queue }) => queue.snapshot())
    const vitals = ownStatus(snapshots, queues, readProcess(), inside.standing())
    this.#fleet.hearOwn(vitals)
    this.#storeState.note(snapshots, at)
    this.#notePod(at, vitals)
  }

  #notePod(at: number, { pressure, loopMs, guards }: PodStatus): void {
    const sum = (what: 'active' | 'waiting') => guards.reduce((all, each) => all + each[what], 0)
    this.#podHistory.add(at, {
      ...(pressure !== undefined && { pressure }),
      loopMs,
      inFlight: sum('active'),
      waiting: sum('waiting'),
      pods: this.#options.inside.membership.live,
      degraded: this.#storeState.degraded ? 1 : 0,
      ...this.#fleetPoint(),
    })
  }

  /** Figures of all pods. Other pods are read only while there are readers. */
  #fleetPoint(): Point<PodColumn> {
    const { live } = this.#options.inside.membership
    if (this.#readers.size === 0 && live > 1) return {}
    const { calls, refused, inFlight, waiting } = this.#fleet.totals()
    return {
      fleetCalls: calls,
      fleetRefused: refused,
      fleetInFlight: inFlight,
      fleetWaiting: waiting,
    }
  }

  /** Reads the store and broadcasts the result. */
  async #refreshFleet(): Promise<void> {
    if (this.#isRefreshing) return
    this.#isRefreshing = true
    try {
      const { inside } = this.#options
      const queues = inside.queues()
      const [, , ticks] = await Promise.all([
        this.#figures.refresh(
          this.#watches.map(({ guard }) => guard),
          this.#fleet.lanes(),
        ),
        this.#fleet.refresh(),
        queues.length === 0 ? [] : queueTicks(queues),
      ])
      if (this.#readers.size === 0) return
      const at = this.#clock.wallMs()
      const sources = { at, nowMs: this.#clock.now(), figures: this.#figures }
      this.#broadcast('fleet', this.#fleet.tick(at, this.#storeState.tick()))
      const guards = this.#watches.flatMap((watch) =>
        watch.last === undefined ? [] : guardTick(watch, watch.last, sources),
      )
      this.#broadcast('guards', { at, sinceMs: this.#sinceMs, guards })
      if (queues.length > 0) this.#broadcast('jobQueues', { at, jobQueues: ticks })
    } finally {
      this.#isRefreshing = false
    }
  }

  #beginWatching(): void {
    this.#decisions.start()
    if (this.#watches.some(({ last }) => last === undefined)) this.#sample()
  }

  #sendDecisions(reader: FeedReader, has: { decision: number; at: number } | undefined): void {
    const records = this.#decisions.since(has)
    if (records.length === 0) return
    this.#send(reader, 'decisions', { seen: records.length, records })
  }

  #sendHello(reader: FeedReader): void {
    this.#send(reader, 'hello', this.#hello(reader.acts))
  }

  #sendHelloToAll(): void {
    for (const reader of this.#readers) this.#sendHello(reader)
  }

  #hello(acts: Hello['acts']): Hello {
    const { inside, may, demo } = this.#options
    return {
      wire: 1,
      boot: this.#boot,
      at: this.#clock.wallMs(),
      pod: shown(inside.membership.pod),
      hasPeers: this.#decisions.hasPeers,
      version: VERSION,
      stages: ORDER,
      guards: this.#watches.map(({ guard }) => guardCard(guard.name, guard.parts.options)),
      jobQueues: inside.queues().map(({ name }) => shown(name)),
      acts,
      may: [...may],
      demo: demo?.(),
      keeps: KEEPS,
    }
  }

  *#histories(since: number) {
    yield* this.#podHistory.since(since)
    for (const { guard, history } of this.#watches) yield* history.since(since, shown(guard.name))
  }

  /** A reader that missed messages gets the current state, which includes them. */
  #greetAgain(reader: FeedReader): void {
    if (reader.isBack) reader.resume()
    this.#sendHello(reader)
    this.#sendCurrentState(reader)
  }

  #sendCurrentState(reader: FeedReader): void {
    const nowMs = this.#clock.now()
    for (const message of this.#last.values()) reader.send(message, nowMs)
  }

  #send<N extends keyof Messages>(reader: FeedReader, name: N, data: Messages[N]): void {
    const message = messageOf(name, data)
    const whole = name === 'hello' || name === 'history' ? message : this.#withId(message)
    reader.send(whole, this.#clock.now())
  }

  #broadcast<N extends keyof Messages>(name: N, data: Messages[N]): void {
    if (this.#readers.size === 0) return
    const message = messageOf(name, data)
    if (name === 'fleet' || name === 'guards' || name === 'jobQueues') this.#last.set(name, message)
    const whole = this.#withId(message)
    const nowMs = this.#clock.now()
    for (const reader of this.#readers) reader.send(whole, nowMs)
  }

  /**
   * The id encodes the position of a returning reader: its last decision and its last time. Earlier messages have no
   * id, because a reader disconnected before them has not received them.
   */
  #withId(message: string): string {
    return `id: ${this.#boot}.${this.#decisions.nextId}.${Math.round(this.#clock.wallMs())}\n${message}`
  }

  #readId(id: string | undefined): { decision: number; at: number } | undefined {
    const [boot, decision, at] = (id ?? '').split('.')
    if (boot !== this.#boot || !/^\d{1,15}$/.test(decision ?? '') || !/^\d{1,15}$/.test(at ?? '')) {
      return undefined
    }
    return { decision: Number(decision), at: Number(at) }
  }
}

function messageOf<N extends keyof Messages>(name: N, data: Messages[N]): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
