/**
 * Sends settlements to the store, in the background and in batches. Each batch has a number that the store
 * remembers, so a batch whose reply was lost is resent safely.
 */

import { isThenable } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { sleep } from '../../core/time/sleep.js'
import type { MaybePromise } from '../../store/port.js'
import type { Correction } from './permit.js'

export interface SettlementBatch {
  lane: string
  sequence: number
  /** Empty: only wakes the next waiting pod. */
  corrections: Correction[]
}

export interface SettlementOptions {
  clock: Clock
  pod: string
  /** How long settlements are collected before they are sent; 0 for a store in this process. */
  collectMs: number
  /** Replies after how many microseconds to send an empty batch, so that a further pod is woken; 0: not at all. */
  send(batch: SettlementBatch): MaybePromise<number>
  /** Units of this lane became free. */
  onFreed(lane: string): void
}

const MAX_BATCH = 256
const MAX_ATTEMPTS = 5
const RETRY_MS = 100

/** Shared by all senders of this process. */
let lastSequence = 0
let senders = 0

export class SettlementSender {
  /** Owner of the sequence numbers. Another limiter of the same name may send at the same time. */
  readonly pod: string
  readonly #options: SettlementOptions
  readonly #waiting = new Map<string, Correction[]>()
  readonly #wakeTimers = new Map<string, Timer>()
  #collecting: Timer | undefined
  #busy = false
  #idle: (() => void)[] = []
  #closed = false

  constructor(options: SettlementOptions) {
    this.#options = options
    this.pod = `${options.pod}/${++senders}`
  }

  add(lane: string, corrections: Correction[]): void {
    if (this.#options.collectMs === 0 && !this.#busy) return this.#sendNow(lane, corrections)
    let waiting = this.#waiting.get(lane)
    if (waiting === undefined) {
      waiting = []
      this.#waiting.set(lane, waiting)
    }
    merge(waiting, corrections)
    if (!this.#busy) this.#collect()
  }

  /** Sends the remaining settlements and stops. Resolves when everything was sent. */
  close(): Promise<void> {
    this.#closed = true
    for (const timer of this.#wakeTimers.values()) timer.cancel()
    this.#wakeTimers.clear()
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      if (!this.#busy) void this.#flush()
    })
  }

  /** A store in this process replies synchronously, so no promise is needed. */
  #sendNow(lane: string, corrections: Correction[]): void {
    const batch = { lane, sequence: ++lastSequence, corrections }
    const sent = this.#sendOrReject(batch)
    if (!isThenable(sent)) {
      this.#wakeLater(lane, sent)
      if (frees(batch)) queueMicrotask(() => this.#options.onFreed(lane))
      return
    }
    this.#busy = true
    void this.#deliver(batch, sent).then(() => this.#flush())
  }

  #collect(): void {
    const { clock, collectMs } = this.#options
    this.#collecting ??= clock.schedule(collectMs, () => void this.#flush())
  }

  /** One batch at a time, so that a higher number never overtakes a lower one. */
  async #flush(): Promise<void> {
    this.#collecting?.cancel()
    this.#collecting = undefined
    this.#busy = true
    // Settlements that arrive meanwhile are collected for the next batch.
    for (const [lane, all] of [...this.#waiting]) {
      const corrections = all.splice(0, MAX_BATCH)
      if (all.length === 0) this.#waiting.delete(lane)
      const batch = { lane, sequence: ++lastSequence, corrections }
      await this.#deliver(batch, this.#sendOrReject(batch))
    }
    this.#busy = false
    if (this.#waiting.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
    else if (this.#idle.length > 0 || this.#options.collectMs === 0) return this.#flush()
    else this.#collect()
  }

  #sendOrReject(batch: SettlementBatch): MaybePromise<number> {
    try {
      return this.#options.send(batch)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Settlements that cannot be delivered stay spent, which is safe for the vendor's limit. */
  async #deliver(batch: SettlementBatch, first: MaybePromise<number>): Promise<void> {
    let sent = first
    for (let attempt = 1; ; attempt++) {
      try {
        this.#wakeLater(batch.lane, await sent)
        if (frees(batch)) this.#options.onFreed(batch.lane)
        return
      } catch {
        if (attempt === MAX_ATTEMPTS) return
        await sleep(this.#options.clock, RETRY_MS * attempt)
        sent = this.#sendOrReject(batch)
      }
    }
  }

  /** Permits are free for further pods, which the store wakes one after the other. */
  #wakeLater(lane: string, afterUs: number): void {
    if (this.#closed || !(afterUs > 0) || this.#wakeTimers.has(lane)) return
    const timer = this.#options.clock.schedule(afterUs / 1_000, () => {
      this.#wakeTimers.delete(lane)
      this.add(lane, [])
    })
    timer.unref()
    this.#wakeTimers.set(lane, timer)
  }
}

function frees({ corrections }: SettlementBatch): boolean {
  return corrections.some(({ delta }) => delta < 0)
}

/** Sums corrections of the same booking and sign: calls of one moment mostly share a booking. */
function merge(waiting: Correction[], corrections: readonly Correction[]): void {
  for (const { id, stamp, delta } of corrections) {
    const same = waiting.find(
      (each) => each.id === id && each.stamp === stamp && each.delta < 0 === delta < 0,
    )
    if (same === undefined) waiting.push({ id, stamp, delta })
    else same.delta += delta
  }
}
