/**
 * Lets calls out of the room. Nothing is taken until everything is free: it looks how many slots and
 * beats this pod has, takes as many calls from the room, asks the store for the permits of all of
 * them in one trip, and starts those who got theirs. The others go back to where they stood, and the
 * lane sleeps exactly as long as the store said. While a trip is under way the next one gathers.
 */
import type { Timer } from '../core/clock.js'
import type { SpillwayError } from '../core/errors.js'
import { gathering } from '../core/gathering.js'
import { ASK_AGAIN_MS } from '../shared/rate-limiter/pause.js'
import type { TakeReply } from '../store/port.js'
import { Admitter, type AdmitterOptions } from './admitter.js'
import type { Entry } from './entry.js'
import { Gate } from './gate.js'
import type { Admission, Price, Waiting } from './wish.js'

export interface DispatcherOptions<P, L, R extends TakeReply> extends AdmitterOptions<P, L, R> {
  /** Whether calls may wait at all, or only for the store's answer. */
  patient: boolean
  /** The store goes by this clock, and need not read it again. Default: false. */
  sameClock?: boolean
  /** What to refuse with whom the vendor's limits keep waiting too long. */
  limitedError(lane: string, retryAfterMs: number, paused: boolean): SpillwayError
  /** What to refuse with who may not wait. */
  busyError(stage: 'pace' | 'concurrency'): SpillwayError
}

/** So long what the store said is taken for true, where nobody waits. */
const TRUSTED_MS = 10
const MOST_IN_A_TRIP = 256
const MOST_IDLE_GATES = 256
const NOW = Promise.resolve()

export class Dispatcher<P, L, R extends TakeReply> {
  readonly #options: DispatcherOptions<P, L, R>
  readonly #admitter: Admitter<P, L, R>
  readonly #gates = new Map<string, Gate>()
  /** Nearly always the same as last time. */
  #lastGate: Gate | undefined
  #sweepAt = MOST_IDLE_GATES
  #dispatching = false
  #again = false
  #paceTimer: Timer | undefined
  readonly #soon = gathering(() => this.dispatch())
  /** Slots have come free, and will be given away in a moment. */
  #expected = false
  readonly #serveFreed = () => {
    this.#expected = false
    this.dispatch()
  }

  constructor(options: DispatcherOptions<P, L, R>) {
    this.#options = options
    this.#admitter = new Admitter(options, {
      blocked: (gate, reply, costs, who) => this.#block(gate, reply, costs, who),
      lost: (gate, untilMs) => {
        gate.blockedUntilMs = Math.max(gate.blockedUntilMs, untilMs)
      },
      back: () => this.dispatch(),
    })
  }

  /** What a call costs under the limits in force. */
  costsOf(price: Price): readonly number[] {
    return this.#admitter.costsOf(price)
  }

  /** Everything at once, if nothing stands in the way; nothing is taken if something does. */
  tryNow(lane: string, price: Price, nowMs: number): Admission<P, L> | undefined {
    const { room, slots, breaker, limits } = this.#options
    // Slots and pace belong to all lanes: whoever waits for them goes first.
    if (room.length > 0 || limits?.remote === true) return undefined
    if (breaker !== undefined && !breaker.isClear(lane)) return undefined
    if (slots.free(nowMs, lane) <= 0 || this.#shutMs(lane, price, nowMs) > 0) return undefined
    return this.takeNow(lane, price, undefined)
  }

  /** The same where it is known that nothing stands in the way. */
  takeNow(lane: string, price: Price, atMs: number | undefined): Admission<P, L> | undefined {
    return this.#admitter.takeNow(this.#gate(lane), price, atMs)
  }

  /** Nobody waits, nothing is known to stand in the way, there is something free, and it is here. */
  isClear(lane: string, nowMs: number): boolean {
    const { room, slots, breaker, limits } = this.#options
    if (room.length > 0 || limits?.remote === true) return false
    if (this.#known(lane)?.isBlocked(nowMs) === true || slots.free(nowMs, lane) <= 0) return false
    return breaker === undefined || breaker.isClear(lane)
  }

  /** Somebody has come into the room. */
  arrived(entry: Entry): void {
    const { room, clock, limits } = this.#options
    const gate = this.#gate(entry.lane)
    if (room.lengthOf(entry.lane) === 1 && !gate.underWay && !gate.paused) {
      // What the store said of others who have left means nothing to one who is alone; what it said
      // just now was said of this one.
      if (gate.blockedAtMs < clock.now()) gate.unblock()
      else gate.blocker = entry as Waiting
    }
    if (limits?.remote !== true) return this.dispatch()
    if (gate.underWay) return
    this.#soon()
  }

  /** A slot has come free, and perhaps many at once: they go with one trip. */
  freed(): void {
    if (this.#options.limits?.remote === true) return this.#soon()
    // Those whose calls have ended already are next; nobody can come in between.
    if (this.#expected) return
    this.#expected = true
    NOW.then(this.#serveFreed)
  }

  /** Somebody has left the room without having got anything. */
  left(entry: Entry): void {
    const gate = this.#gates.get(entry.lane)
    // The others waited for its turn, not for their own.
    if (gate?.blocker === entry) this.unblock(entry.lane)
  }

  /** How many wait for what this pod has; those of a lane that waits for its vendor do not. */
  crowd(nowMs: number): number {
    const { room } = this.#options
    const { onlyLane } = room
    if (onlyLane !== undefined)
      return this.#known(onlyLane)?.isBlocked(nowMs) === true ? 0 : room.length
    let waiting = 0
    for (const lane of room.lanes) {
      if (this.#gates.get(lane)?.isBlocked(nowMs) !== true) waiting += room.lengthOf(lane)
    }
    return waiting
  }

  /** Places for newcomers beyond those of the room: for so many there is something free now. */
  spare(lane: string, price: Price, nowMs: number): number {
    const { slots } = this.#options
    return this.#shutMs(lane, price, nowMs) > 0 ? 0 : Math.max(0, slots.free(nowMs, lane))
  }

  /** How long the lane is known to be blocked for a call of this cost. */
  blockedMs(lane: string, price: Price, nowMs: number): number {
    return this.#shutMs(lane, price, nowMs)
  }

  /** How long ago the store said that the lane is blocked; nothing: it is not. */
  heardAgoMs(lane: string, nowMs: number): number | undefined {
    const gate = this.#gates.get(lane)
    return gate?.isBlocked(nowMs) === true ? Math.max(0, nowMs - gate.blockedAtMs) : undefined
  }

  /** The vendor wants a pause, or somebody waits for the limits already. */
  isShut(lane: string, nowMs: number): boolean {
    const gate = this.#known(lane)
    if (gate?.isBlocked(nowMs) !== true || gate.lostTrips > 0) return false
    return gate.paused || this.#options.room.lengthOf(lane) > 0
  }

  /** For how long the next in turn has to wait, as far as is known; 0: nobody has to. */
  waitMs(lane: string, nowMs: number): number {
    const gate = this.#gates.get(lane)
    return gate?.isBlocked(nowMs) === true ? gate.blockedUntilMs - nowMs : 0
  }

  /** Whether it is because the vendor wants a pause. */
  isPaused(lane: string): boolean {
    return this.#known(lane)?.paused === true
  }

  /**
   * A pause is for everybody, and so is a line: whoever comes has to wait as long as its head. Where
   * nobody waits, what the store said of an earlier call is of use only for a moment: other pods give
   * back what they did not need.
   */
  #shutMs(lane: string, price: Price, nowMs: number): number {
    const gate = this.#known(lane)
    // A store that did not answer says nothing about the limits.
    if (gate === undefined || !gate.isBlocked(nowMs) || gate.lostTrips > 0) return 0
    if (nowMs >= gate.askAgainMs) void this.#askAgain(gate, nowMs).catch(() => {})
    const holds =
      gate.paused || this.#options.room.lengthOf(lane) > 0 || this.#saidOf(gate, price, nowMs)
    return holds ? gate.blockedUntilMs - nowMs : 0
  }

  /** The store has just said it of one who wanted no more. */
  #saidOf(gate: Gate, price: Price, nowMs: number): boolean {
    if (nowMs - gate.blockedAtMs >= TRUSTED_MS) return false
    return wantsAsMuch(this.#admitter.costsOf(price), gate.blockedFor)
  }

  /** Something has come free, or time has passed. */
  dispatch(): void {
    // Whoever is let go may come back at once and ask again; one loop is enough.
    this.#again = true
    if (this.#dispatching) return
    const { clock, slots, patient } = this.#options
    // All slots are in use: whoever gives one back comes here.
    if (patient && slots.full) return
    const nowMs = clock.now()
    this.#dispatching = true
    try {
      while (this.#again) {
        this.#again = false
        if (this.#serveOne(nowMs) && slots.full) break
        for (const [gate, entries] of this.#choose(nowMs)) this.#admitter.admit(gate, entries)
      }
    } finally {
      this.#dispatching = false
    }
    if (!patient) this.#refuseWaiting()
    this.#sleep(nowMs)
  }

  /** The lane is blocked no longer than it has to be: something was given back, or limits changed. */
  unblock(lane: string): void {
    const gate = this.#gates.get(lane)
    if (gate === undefined || gate.paused) return
    gate.unblock()
    this.dispatch()
  }

  /** Nobody gets through before then, whatever it costs. */
  pauseUntil(lane: string, untilMs: number): void {
    const gate = this.#gate(lane)
    // The longer of two pauses; how long the next in turn had to wait is asked again afterwards.
    gate.blockedUntilMs = gate.paused ? Math.max(gate.blockedUntilMs, untilMs) : untilMs
    gate.paused = true
    // We have heard it ourselves: the store's word on it may be the older one.
    gate.askAgainMs = Number.POSITIVE_INFINITY
    this.#thinOut(gate)
    this.#sleep(this.#options.clock.now())
  }

  /** Everybody in the lane leaves, also those for whom the store is being asked; unless there is no reason. */
  empty(lane: string | undefined, createError: (lane: string) => unknown): void {
    const { room } = this.#options
    const lanes = lane === undefined ? [...room.lanes, ...this.#gates.keys()] : [lane]
    for (const each of new Set(lanes)) {
      const asking = this.#gates.get(each)?.asking ?? []
      for (const entry of [...room.waiting(each), ...asking]) {
        if (entry.state === 'gone') continue
        const error = createError(each)
        if (error === undefined) break
        room.remove(entry)
        ;(entry as Waiting<P, L>).guest.refuse(error)
      }
    }
  }

  /** Resolves when nobody is on a trip any more, and what it brought has been given back. */
  close(): Promise<void> {
    this.#paceTimer?.cancel()
    for (const { timer } of this.#gates.values()) timer?.cancel()
    return this.#admitter.idle()
  }

  #known(lane: string): Gate | undefined {
    if (this.#lastGate?.lane === lane) return this.#lastGate
    const gate = this.#gates.get(lane)
    if (gate !== undefined) this.#lastGate = gate
    return gate
  }

  /** In use, or lately so. */
  lanes(): Iterable<string> {
    return this.#gates.keys()
  }

  #gate(lane: string): Gate {
    const known = this.#known(lane)
    if (known !== undefined) return known
    if (this.#gates.size >= this.#sweepAt) this.#sweep()
    const gate = new Gate(lane)
    this.#gates.set(lane, gate)
    return gate
  }

  /** Names of lanes may be many; those that nothing is known of are forgotten. */
  #sweep(): void {
    const nowMs = this.#options.clock.now()
    for (const [lane, gate] of this.#gates) {
      const idle = !gate.underWay && gate.timer === undefined && !gate.isBlocked(nowMs)
      if (idle && this.#options.room.lengthOf(lane) === 0) this.#gates.delete(lane)
    }
    this.#lastGate = undefined
    this.#sweepAt = Math.max(MOST_IDLE_GATES, this.#gates.size * 2)
  }

  /**
   * The usual way out of a room that is not crowded: there is something free for one, or only one
   * waits, nothing stands in its way, and the store answers at once. Answers whether it went.
   */
  #serveOne(nowMs: number): boolean {
    const { room, slots, breaker, limits, sameClock } = this.#options
    const lane = room.onlyLane
    if (lane === undefined || limits?.remote === true) return false
    const gate = this.#gate(lane)
    if (gate.underWay || gate.isBlocked(nowMs)) return false
    const free = slots.free(nowMs, lane)
    if (free < 1 || (free >= 2 && room.length > 1)) return false
    if (breaker !== undefined && !breaker.isClear(lane)) return false
    const entry = room.take(lane, nowMs) as Waiting<P, L> | undefined
    if (entry === undefined) return false
    return this.#admitter.serve(gate, entry, sameClock === true ? nowMs : undefined)
  }

  /** Takes out of the room as many as there is something free for, the best first. */
  #choose(nowMs: number): Map<Gate, Waiting<P, L>[]> {
    const { room, slots } = this.#options
    const chosen = new Map<Gate, Waiting<P, L>[]>()
    const ready = [...room.lanes].filter((lane) => {
      const gate = this.#gate(lane)
      return !gate.underWay && !gate.isBlocked(nowMs) && slots.free(nowMs, lane) > 0
    })
    for (let free = slots.free(nowMs); free > 0; ) {
      const lane = ready.length === 1 ? ready[0] : room.bestOf(ready, nowMs)
      const entry = lane === undefined ? undefined : room.take(lane, nowMs)
      if (entry === undefined) {
        if (lane === undefined || ready.length === 1) break
        // All who waited in this lane were let go, because it stood. There are others.
        continue
      }
      free--
      const gate = this.#gate(entry.lane)
      const group = chosen.get(gate)
      if (group === undefined) chosen.set(gate, [entry as Waiting<P, L>])
      else group.push(entry as Waiting<P, L>)
      // The lane has a limit of its own, and that is all it may have.
      const most = slots.lanes?.free(entry.lane) ?? Number.POSITIVE_INFINITY
      if ((group?.length ?? 1) >= most) ready.splice(ready.indexOf(entry.lane), 1)
      if (group !== undefined && group.length >= MOST_IN_A_TRIP) {
        // The others go with the next trip; if the store answers at once, that is now.
        this.#again = true
        break
      }
    }
    return chosen
  }

  /** The store says how long the first has to wait that got nothing. */
  #block(
    gate: Gate,
    { waitUs, paused }: TakeReply,
    costs: readonly number[],
    blocker: Waiting<P, L> | undefined,
  ): void {
    const nowMs = this.#options.clock.now()
    const untilMs = nowMs + waitUs / 1_000
    // The vendor told us while the store was asked.
    if (gate.paused && gate.blockedUntilMs > untilMs) return this.#thinOut(gate)
    gate.blockedUntilMs = untilMs
    gate.askAgainMs = paused ? nowMs + ASK_AGAIN_MS : Number.POSITIVE_INFINITY
    gate.blockedAtMs = nowMs
    gate.blockedFor = costs
    gate.blocker = blocker as Waiting | undefined
    gate.paused = paused
    this.#thinOut(gate)
  }

  /** A pause may be over sooner than the store said: somebody has ended it by hand. Takes no slot. */
  async #askAgain(gate: Gate, nowMs: number): Promise<void> {
    gate.askAgainMs = nowMs + ASK_AGAIN_MS
    const { limits, clock } = this.#options
    const pausedMs = await limits?.pausedMs(gate.lane)
    // Meanwhile the vendor may have told us.
    if (pausedMs === undefined || gate.askAgainMs === Number.POSITIVE_INFINITY) return
    gate.blockedUntilMs = clock.now() + pausedMs
    if (pausedMs > 0) return
    gate.unblock()
    this.dispatch()
  }

  /**
   * Whoever cannot wait as long as the next in turn has to is told now, not later. If the next in
   * turn itself cannot, those go with it who want as much; the others may ask for what they want.
   */
  #thinOut(gate: Gate): void {
    const { room, clock } = this.#options
    const cannotWait = (entry: Entry) => room.untilMs(entry) < gate.blockedUntilMs
    const { blocker } = gate
    const headLeaves =
      !gate.paused && blocker !== undefined && (blocker.state === 'gone' || cannotWait(blocker))
    const retryAfterMs = gate.blockedUntilMs - clock.now()
    for (const entry of room.waiting(gate.lane) as Waiting<P, L>[]) {
      if (entry.state === 'gone') continue
      const stays = headLeaves && !wantsAsMuch(this.#admitter.costsOf(entry.guest), gate.blockedFor)
      if (stays || !cannotWait(entry)) continue
      room.remove(entry)
      entry.guest.refuse(this.#options.limitedError(gate.lane, retryAfterMs, gate.paused))
    }
    if (headLeaves) {
      gate.unblock()
      this.#again = true
    }
  }

  /** Where nobody may wait, whoever the store is not being asked for is refused. */
  #refuseWaiting(): void {
    const { room, clock, limitedError, busyError, slots } = this.#options
    for (const lane of [...room.lanes]) {
      const gate = this.#gate(lane)
      if (gate.underWay || gate.lostTrips > 0) continue
      const nowMs = clock.now()
      const blockedMs = gate.blockedUntilMs - nowMs
      for (const entry of room.waiting(lane)) {
        if (entry.state === 'gone') continue
        room.remove(entry)
        const stage = slots.paceWaitMs(nowMs) > 0 ? 'pace' : 'concurrency'
        const error = blockedMs > 0 ? limitedError(lane, blockedMs, gate.paused) : busyError(stage)
        ;(entry as Waiting<P, L>).guest.refuse(error)
      }
    }
  }

  /** One timer for each lane that waits for a known time, and one for the pace. */
  #sleep(nowMs: number): void {
    const { room, clock, slots } = this.#options
    if (room.length === 0) return
    if (room.onlyLane !== undefined) this.#sleepAt(this.#gate(room.onlyLane), nowMs)
    else for (const lane of room.lanes) this.#sleepAt(this.#gate(lane), nowMs)
    const paceMs = slots.paceWaitMs(nowMs)
    if (paceMs === 0) return
    for (const lane of room.lanes) room.excuse(lane, nowMs + paceMs)
    if (this.#paceTimer !== undefined) return
    this.#paceTimer = clock.schedule(paceMs, () => {
      this.#paceTimer = undefined
      this.dispatch()
    })
    this.#paceTimer.unref()
  }

  #sleepAt(gate: Gate, nowMs: number): void {
    if (gate.underWay || !gate.isBlocked(nowMs)) return
    const { room, clock } = this.#options
    if (nowMs >= gate.askAgainMs) void this.#askAgain(gate, nowMs).catch(() => {})
    room.excuse(gate.lane, gate.blockedUntilMs)
    // One that fires earlier will do: it looks, and sleeps again.
    const { wakeMs } = gate
    if (gate.timer !== undefined && gate.timerDueMs <= wakeMs) return
    gate.timer?.cancel()
    gate.timerDueMs = wakeMs
    gate.timer = clock.schedule(wakeMs - nowMs, () => {
      gate.timer = undefined
      this.dispatch()
    })
    // Whoever waits keeps the process alive; when all have left, nothing should.
    gate.timer.unref()
  }
}

function wantsAsMuch(one: readonly number[], other: readonly number[]): boolean {
  for (let index = 0; index < one.length; index++) {
    if ((one[index] as number) < (other[index] ?? 0)) return false
  }
  return true
}
