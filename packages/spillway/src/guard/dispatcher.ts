/**
 * Lets calls out of the room. Nothing is taken until everything is free: it looks how many slots and
 * beats this pod has, takes as many calls from the room, asks the store for the permits of all of
 * them in one trip, and starts those who got theirs. The others go back to where they stood, and the
 * lane sleeps exactly as long as the store said. While a trip is under way the next one gathers.
 */

import type { SpillwayError } from '../core/errors.js'
import { gathering } from '../core/next-tick-batch.js'
import type { Timer } from '../core/time/clock.js'
import { LaneRegistry } from '../shared/lanes/lane-registry.js'
import type { TakeReply } from '../store/port.js'
import { Admitter, type AdmitterOptions } from './admitter.js'
import type { Entry } from './entry.js'
import type { Gate } from './gate.js'
import { Gatekeeper } from './gatekeeper.js'
import { Gates } from './gates.js'
import type { Admission, Price, Waiting } from './wish.js'

export interface DispatcherOptions<P, L, R extends TakeReply> extends AdmitterOptions<P, L, R> {
  /** Whether calls may wait at all, or only for the store's answer. */
  patient: boolean
  /** The store goes by this clock, and need not read it again. Default: false. */
  sameClock?: boolean
  /** The guard's lanes. Default: lanes of its own. */
  lanes?: LaneRegistry
  /** What to refuse with whom the vendor's limits keep waiting too long. */
  limitedError(gate: Gate, retryAfterMs: number, price: Price): SpillwayError
  /** What to refuse with who may not wait. */
  busyError(stage: 'pace' | 'concurrency'): SpillwayError
}

const MOST_IN_A_TRIP = 256
const NOW = Promise.resolve()

export class Dispatcher<P, L, R extends TakeReply> {
  readonly #options: DispatcherOptions<P, L, R>
  readonly #admitter: Admitter<P, L, R>
  readonly #gates: Gates
  readonly #keeper: Gatekeeper
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
    const { clock, room, limits, limitedError } = options
    const lanes = options.lanes ?? new LaneRegistry({ name: '', clock })
    this.#gates = new Gates(clock, room, lanes)
    this.#keeper = new Gatekeeper({
      clock,
      room,
      gates: this.#gates,
      pausedMs: (lane) => limits?.pausedMs(lane),
      costsOf: (price) => this.#admitter.costsOf(price),
      limitedError,
      onUnblocked: () => this.dispatch(),
    })
    this.#admitter = new Admitter(options, {
      blocked: (gate, reply, costs, who) => {
        const goneSome = this.#keeper.block(gate, reply, costs, who)
        // What it did not take is for the next lane.
        if (goneSome || gate.isBlocked(clock.now())) this.#again = true
      },
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
    if (slots.free(nowMs, lane) <= 0 || this.#keeper.shutMs(lane, price, nowMs) > 0)
      return undefined
    return this.takeNow(lane, price, undefined)
  }

  /** The same where it is known that nothing stands in the way. */
  takeNow(lane: string, price: Price, atMs: number | undefined): Admission<P, L> | undefined {
    return this.#admitter.takeNow(this.#gates.of(lane), price, atMs)
  }

  /** Nobody waits, nothing is known to stand in the way, there is something free, and it is here. */
  isClear(lane: string, nowMs: number): boolean {
    const { room, slots, breaker, limits } = this.#options
    if (room.length > 0 || limits?.remote === true) return false
    if (this.#gates.known(lane)?.isBlocked(nowMs) === true || slots.free(nowMs, lane) <= 0)
      return false
    return breaker === undefined || breaker.isClear(lane)
  }

  /** Somebody has come into the room. */
  arrived(entry: Entry): void {
    const { limits } = this.#options
    const gate = this.#gates.of(entry.lane)
    this.#keeper.arrived(gate, entry)
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
    const gate = this.#gates.known(entry.lane)
    // The others waited for its turn, not for their own.
    if (gate?.blocker === entry) this.unblock(entry.lane)
  }

  /** How many wait for what this pod has; those of a lane that waits for its vendor do not. */
  crowd(nowMs: number): number {
    const { room } = this.#options
    const { onlyLane } = room
    if (onlyLane !== undefined)
      return this.#gates.known(onlyLane)?.isBlocked(nowMs) === true ? 0 : room.length
    let waiting = 0
    for (const lane of room.lanes) {
      if (this.#gates.known(lane)?.isBlocked(nowMs) !== true) waiting += room.lengthOf(lane)
    }
    return waiting
  }

  /** Places for newcomers beyond those of the room: for so many there is something free now. */
  spare(lane: string, price: Price, nowMs: number): number {
    const { slots } = this.#options
    return this.#keeper.shutMs(lane, price, nowMs) > 0 ? 0 : Math.max(0, slots.free(nowMs, lane))
  }

  /** How long the lane is known to be blocked for a call of this cost. */
  blockedMs(lane: string, price: Price, nowMs: number): number {
    return this.#keeper.shutMs(lane, price, nowMs)
  }

  /** How long ago the store said that the lane is blocked; nothing: it is not. */
  heardAgoMs(lane: string, nowMs: number): number | undefined {
    return this.#keeper.heardAgoMs(lane, nowMs)
  }

  /** The vendor wants a pause, or somebody waits for the limits already. */
  isShut(lane: string, nowMs: number): boolean {
    return this.#keeper.isShut(lane, nowMs)
  }

  /** For how long the next in turn has to wait, as far as is known; 0: nobody has to. */
  waitMs(lane: string, nowMs: number): number {
    return Math.max(0, (this.#gates.known(lane)?.blockedUntilMs ?? 0) - nowMs)
  }

  /** Whether it is because the vendor wants a pause. */
  isPaused(lane: string): boolean {
    return this.#gates.known(lane)?.paused === true
  }

  /** Refuses a call that the vendor's limits keep waiting too long. */
  limitedError(lane: string, retryAfterMs: number, price: Price): SpillwayError {
    return this.#options.limitedError(this.#gates.of(lane), retryAfterMs, price)
  }

  /** Something has come free, or time has passed. */
  dispatch(): void {
    // Whoever is let go may come back at once and ask again; one loop is enough.
    this.#again = true
    if (this.#dispatching) return
    const { clock, room, slots, patient } = this.#options
    // All slots are in use: whoever gives one back comes here.
    if (patient && slots.full) return
    const nowMs = clock.now()
    this.#dispatching = true
    try {
      while (this.#again) {
        this.#again = false
        const { onlyLane } = room
        if (onlyLane !== undefined) this.#serveLane(this.#gates.of(onlyLane), nowMs)
        else for (const [gate, group] of this.#choose(nowMs)) this.#admit(gate, group, nowMs)
      }
    } finally {
      this.#dispatching = false
    }
    if (!patient) this.#refuseWaiting()
    this.#sleep(nowMs)
  }

  /** The lane is blocked no longer than it has to be: something was given back, or limits changed. */
  unblock(lane: string): void {
    const gate = this.#gates.known(lane)
    if (gate === undefined || gate.paused) return
    gate.unblock()
    this.dispatch()
  }

  /** How long a pause of the lane still lasts; zero if it is not paused. */
  pausedMs(lane: string): number {
    const gate = this.#gates.known(lane)
    if (gate?.paused !== true) return 0
    return Math.max(0, gate.blockedUntilMs - this.#options.clock.now())
  }

  /** Nobody gets through before then, whatever it costs. */
  pauseUntil(lane: string, untilMs: number): void {
    this.#keeper.pause(this.#gates.of(lane), untilMs)
    this.#sleep(this.#options.clock.now())
  }

  /** Everybody in the lane leaves, also those for whom the store is being asked; unless there is no reason. */
  empty(lane: string | undefined, createError: (lane: string) => unknown): void {
    const { room } = this.#options
    const lanes = lane === undefined ? [...room.lanes, ...this.#gates.lanes()] : [lane]
    for (const each of new Set(lanes)) {
      const asking = this.#gates.known(each)?.asking ?? []
      for (const entry of [...room.waiting(each), ...asking]) {
        if (entry.state === 'gone') continue
        const error = createError(each)
        if (error === undefined) break
        room.remove(entry)
        ;(entry as Waiting<P, L>).refuse(error)
      }
    }
  }

  /** Resolves when nobody is on a trip any more, and what it brought has been given back. */
  close(): Promise<void> {
    this.#paceTimer?.cancel()
    this.#gates.close()
    return this.#admitter.idle()
  }

  /** The usual way out: all who wait are in one lane. */
  #serveLane(gate: Gate, nowMs: number): void {
    const { room, slots } = this.#options
    const { lane } = gate
    if (gate.underWay || gate.isBlocked(nowMs)) return
    const group: Waiting<P, L>[] = []
    const most = Math.min(slots.free(nowMs, lane), MOST_IN_A_TRIP)
    while (group.length < most) {
      const entry = room.take(lane, nowMs)
      if (entry === undefined) break
      group.push(entry as Waiting<P, L>)
    }
    // The others go with the next trip; if the store answers at once, that is now.
    if (group.length === MOST_IN_A_TRIP) this.#again = true
    if (group.length > 0) this.#admit(gate, group, nowMs)
  }

  /** Where nothing stands in their way and the store answers at once, they go now. */
  #admit(gate: Gate, group: Waiting<P, L>[], nowMs: number): void {
    const { breaker, limits, sameClock } = this.#options
    const clear = breaker === undefined || breaker.isClear(gate.lane)
    if (!clear || limits?.remote === true) return this.#admitter.admit(gate, group)
    this.#admitter.serve(gate, group, sameClock === true ? nowMs : undefined)
  }

  /** Takes out of the room as many as there is something free for, the best first. */
  #choose(nowMs: number): Map<Gate, Waiting<P, L>[]> {
    const { room, slots } = this.#options
    const chosen = new Map<Gate, Waiting<P, L>[]>()
    const ready = [...room.lanes].filter((lane) => {
      const gate = this.#gates.of(lane)
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
      const gate = this.#gates.of(entry.lane)
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

  /** Where nobody may wait, whoever the store is not being asked for is refused. */
  #refuseWaiting(): void {
    const { room, clock, limitedError, busyError, slots } = this.#options
    for (const lane of [...room.lanes]) {
      const gate = this.#gates.of(lane)
      if (gate.underWay || gate.lostTrips > 0) continue
      const nowMs = clock.now()
      const blockedMs = gate.blockedUntilMs - nowMs
      for (const entry of room.waiting(lane)) {
        if (entry.state === 'gone') continue
        room.remove(entry)
        const stage = slots.paceWaitMs(nowMs) > 0 ? 'pace' : 'concurrency'
        const waiting = entry as Waiting<P, L>
        waiting.refuse(blockedMs > 0 ? limitedError(gate, blockedMs, waiting) : busyError(stage))
      }
    }
  }

  /** One timer for each lane that waits for a known time, and one for the pace. */
  #sleep(nowMs: number): void {
    const { room, clock, slots } = this.#options
    if (room.length === 0) return
    if (room.onlyLane !== undefined) this.#sleepAt(this.#gates.of(room.onlyLane), nowMs)
    else for (const lane of room.lanes) this.#sleepAt(this.#gates.of(lane), nowMs)
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
    this.#keeper.askAgain(gate, nowMs)
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
