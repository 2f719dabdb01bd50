/**
 * Knows which lanes are blocked, and until when: because the vendor wants a pause, or because the
 * limits have nothing left for the next in turn. Tells whoever cannot wait so long at once.
 */

import type { SpillwayError } from '../core/errors.js'
import type { Clock } from '../core/time/clock.js'
import { ASK_AGAIN_MS } from '../shared/rate-limiter/pause.js'
import type { TakeReply } from '../store/port.js'
import type { Entry } from './entry.js'
import type { Gate } from './gate.js'
import type { Gates } from './gates.js'
import type { Room } from './room.js'
import type { Price, Waiting } from './wish.js'

export interface GatekeeperOptions {
  clock: Clock
  room: Room
  gates: Gates
  /** For how long a lane is paused, if anybody knows. */
  pausedMs(lane: string): Promise<number | undefined> | undefined
  costsOf(price: Price): readonly number[]
  /** What to refuse with whom the vendor's limits keep waiting too long. */
  limitedError(gate: Gate, retryAfterMs: number, price: Price): SpillwayError
  /** A lane is blocked no longer. */
  onUnblocked(): void
}

/** So long what the store said is taken for true, where nobody waits. */
const TRUSTED_MS = 10

export class Gatekeeper {
  readonly #options: GatekeeperOptions

  constructor(options: GatekeeperOptions) {
    this.#options = options
  }

  /**
   * For how long the lane is known to be blocked for a call of this cost. A pause is for everybody,
   * and so is a line: whoever comes has to wait as long as its head. Where nobody waits, what the
   * store said of an earlier call is of use only for a moment: other pods give back what they did not
   * need.
   */
  shutMs(lane: string, price: Price, nowMs: number): number {
    const { gates, room } = this.#options
    const gate = gates.known(lane)
    // A store that did not answer says nothing about the limits.
    if (gate === undefined || !gate.isBlocked(nowMs) || gate.lostTrips > 0) return 0
    this.askAgain(gate, nowMs)
    const holds = gate.paused || room.lengthOf(lane) > 0 || this.#saidOf(gate, price, nowMs)
    return holds ? gate.blockedUntilMs - nowMs : 0
  }

  /** How long ago the store said that the lane is blocked; nothing: it is not. */
  heardAgoMs(lane: string, nowMs: number): number | undefined {
    const gate = this.#options.gates.known(lane)
    return gate?.isBlocked(nowMs) === true ? Math.max(0, nowMs - gate.blockedAtMs) : undefined
  }

  /** The vendor wants a pause, or somebody waits for the limits already. */
  isShut(lane: string, nowMs: number): boolean {
    const { gates, room } = this.#options
    const gate = gates.known(lane)
    if (gate?.isBlocked(nowMs) !== true || gate.lostTrips > 0) return false
    return gate.paused || room.lengthOf(lane) > 0
  }

  /** Somebody has come into the room. */
  arrived(gate: Gate, entry: Entry): void {
    const { room, clock } = this.#options
    if (room.lengthOf(gate.lane) !== 1 || gate.underWay || gate.paused) return
    // What the store said of others who have left means nothing to one who is alone; what it said
    // just now was said of this one.
    if (gate.blockedAtMs < clock.now()) gate.unblock()
    else gate.blocker = entry as Waiting
  }

  /**
   * The store says how long the first has to wait that got nothing. Answers whether the others may ask
   * at once, because that one has left.
   */
  block(
    gate: Gate,
    { waitUs, paused, left }: TakeReply,
    costs: readonly number[],
    blocker: Entry | undefined,
  ): boolean {
    const nowMs = this.#options.clock.now()
    const untilMs = nowMs + waitUs / 1_000
    // The vendor told us while the store was asked.
    if (gate.paused && gate.blockedUntilMs > untilMs) return this.#thinOut(gate)
    gate.blockedUntilMs = untilMs
    gate.askAgainMs = paused ? nowMs + ASK_AGAIN_MS : Number.POSITIVE_INFINITY
    gate.blockedAtMs = nowMs
    gate.blockedFor = costs
    gate.left = left
    gate.blocker = blocker as Waiting | undefined
    gate.paused = paused
    return this.#thinOut(gate)
  }

  /** Nobody gets through before then, whatever it costs. */
  pause(gate: Gate, untilMs: number): void {
    // The longer of two pauses; how long the next in turn had to wait is asked again afterwards.
    gate.blockedUntilMs = gate.paused ? Math.max(gate.blockedUntilMs, untilMs) : untilMs
    gate.paused = true
    // We have heard it ourselves: the store's word on it may be the older one.
    gate.askAgainMs = Number.POSITIVE_INFINITY
    this.#thinOut(gate)
  }

  /** A pause may be over sooner than the store said, if it is time to ask: somebody has ended it by hand. */
  askAgain(gate: Gate, nowMs: number): void {
    if (nowMs >= gate.askAgainMs) void this.#ask(gate, nowMs).catch(() => {})
  }

  /** Takes no slot. */
  async #ask(gate: Gate, nowMs: number): Promise<void> {
    gate.askAgainMs = nowMs + ASK_AGAIN_MS
    const { clock, onUnblocked } = this.#options
    const pausedMs = await this.#options.pausedMs(gate.lane)
    // Meanwhile the vendor may have told us.
    if (pausedMs === undefined || gate.askAgainMs === Number.POSITIVE_INFINITY) return
    gate.blockedUntilMs = clock.now() + pausedMs
    if (pausedMs > 0) return
    gate.unblock()
    onUnblocked()
  }

  /** The store has just said it of one who wanted no more. */
  #saidOf(gate: Gate, price: Price, nowMs: number): boolean {
    if (nowMs - gate.blockedAtMs >= TRUSTED_MS) return false
    return wantsAsMuch(this.#options.costsOf(price), gate.blockedFor)
  }

  /**
   * Whoever cannot wait as long as the next in turn has to is told now, not later. If the next in
   * turn itself cannot, those go with it who want as much; the others may ask for what they want.
   */
  #thinOut(gate: Gate): boolean {
    const { room, clock, costsOf, limitedError } = this.#options
    const cannotWait = (entry: Entry) => room.untilMs(entry) < gate.blockedUntilMs
    const { blocker } = gate
    const headLeaves =
      !gate.paused && blocker !== undefined && (blocker.state === 'gone' || cannotWait(blocker))
    const retryAfterMs = gate.blockedUntilMs - clock.now()
    for (const entry of room.waiting(gate.lane) as Waiting[]) {
      if (entry.state === 'gone' || !cannotWait(entry)) continue
      if (headLeaves && !wantsAsMuch(costsOf(entry), gate.blockedFor)) continue
      room.remove(entry)
      entry.refuse(limitedError(gate, retryAfterMs, entry))
    }
    if (headLeaves) gate.unblock()
    return headLeaves
  }
}

function wantsAsMuch(one: readonly number[], other: readonly number[]): boolean {
  for (let index = 0; index < one.length; index++) {
    if ((one[index] as number) < (other[index] ?? 0)) return false
  }
  return true
}
