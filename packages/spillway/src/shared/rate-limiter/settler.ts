/**
 * Sends what permits really cost, in the background and together. Each sending has a number that
 * the store remembers, so one whose answer was lost is simply sent again.
 */

import { isThenable } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { sleep } from '../../core/time/sleep.js'
import type { MaybePromise } from '../../store/port.js'
import type { Correction } from './permit.js'

export interface Sending {
  lane: string
  sequence: number
  corrections: Correction[]
}

const MOST_SETTLEMENTS = 256
const MOST_TRIES = 5
const RETRY_MS = 100

/** Of this process. */
let lastSequence = 0
let settlers = 0

export class Settler {
  /** Whose numbers these are: another limiter of the same name may send at the same time. */
  readonly pod: string
  readonly #send: (sending: Sending) => MaybePromise<void>
  readonly #onGivenBack: (lane: string) => void
  readonly #clock: Clock
  readonly #gatherMs: number
  readonly #waiting = new Map<string, Correction[]>()
  #gathering: Timer | undefined
  #busy = false
  #idle: (() => void)[] = []

  /**
   * `onGivenBack` hears of lanes on which something became free. `gatherMs`: so long what is to be sent waits
   * for more of it; 0 for a store in this process.
   */
  constructor(
    clock: Clock,
    pod: string,
    gatherMs: number,
    send: (sending: Sending) => MaybePromise<void>,
    onGivenBack: (lane: string) => void,
  ) {
    this.#clock = clock
    this.pod = `${pod}/${++settlers}`
    this.#gatherMs = gatherMs
    this.#send = send
    this.#onGivenBack = onGivenBack
  }

  add(lane: string, corrections: Correction[]): void {
    if (this.#gatherMs === 0 && !this.#busy) return this.#sendAtOnce(lane, corrections)
    const waiting = this.#waiting.get(lane)
    if (waiting === undefined) this.#waiting.set(lane, corrections)
    else addTo(waiting, corrections)
    if (!this.#busy) this.#gather()
  }

  /** A store in this process has answered when it returns: no promise is needed for that. */
  #sendAtOnce(lane: string, corrections: Correction[]): void {
    const sending = { lane, sequence: ++lastSequence, corrections }
    const sent = this.#sendOrReject(sending)
    if (!isThenable(sent)) {
      if (givesBack(sending)) queueMicrotask(() => this.#onGivenBack(lane))
      return
    }
    this.#busy = true
    void this.#deliver(sending, sent).then(() => this.#flush())
  }

  /** Resolves when nothing is left to send. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#busy && this.#waiting.size === 0) return resolve()
      this.#idle.push(resolve)
      if (!this.#busy) void this.#flush()
    })
  }

  #gather(): void {
    this.#gathering ??= this.#clock.schedule(this.#gatherMs, () => void this.#flush())
  }

  /** One sending at a time, so that a higher number never overtakes a lower one. */
  async #flush(): Promise<void> {
    this.#gathering?.cancel()
    this.#gathering = undefined
    this.#busy = true
    // Not those that come in meanwhile: they wait for more of them.
    for (const [lane, all] of [...this.#waiting]) {
      const corrections = all.splice(0, MOST_SETTLEMENTS)
      if (all.length === 0) this.#waiting.delete(lane)
      const sending = { lane, sequence: ++lastSequence, corrections }
      await this.#deliver(sending, this.#sendOrReject(sending))
    }
    this.#busy = false
    if (this.#waiting.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
    else if (this.#idle.length > 0 || this.#gatherMs === 0) return this.#flush()
    else this.#gather()
  }

  #sendOrReject(sending: Sending): MaybePromise<void> {
    try {
      return this.#send(sending)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** What cannot be delivered counts as spent: the books err on the vendor's side. */
  async #deliver(sending: Sending, first: MaybePromise<void>): Promise<void> {
    let sent = first
    for (let tries = 1; ; tries++) {
      try {
        await sent
        if (givesBack(sending)) this.#onGivenBack(sending.lane)
        return
      } catch {
        if (tries === MOST_TRIES) return
        await sleep(this.#clock, RETRY_MS * tries)
        sent = this.#sendOrReject(sending)
      }
    }
  }
}

function givesBack({ corrections }: Sending): boolean {
  return corrections.some(({ delta }) => delta < 0)
}

/** What is the same but for how much it is becomes one: calls of one moment mostly are. */
function addTo(waiting: Correction[], corrections: readonly Correction[]): void {
  for (const { id, stamp, delta } of corrections) {
    const same = waiting.find(
      (each) => each.id === id && each.stamp === stamp && each.delta < 0 === delta < 0,
    )
    if (same === undefined) waiting.push({ id, stamp, delta })
    else same.delta += delta
  }
}
