/**
 * Simulates pushed messages of a remote store: over a separate connection, which all watchers share
 * and which exists while there are any.
 */
import type { Clock } from '../core/time/clock.js'
import type { BreakerView, BreakerWatcher, Store } from '../store/port.js'
import { FifoDelay } from './fifo-delay.js'
import { copyMessage } from './simulated-command.js'

export interface PushLineOptions {
  clock: Clock
  /** The current store behind the connection. */
  store(): Store
  /** One way of a round trip. */
  drawHalfMs(): number
  /** Whether the next message is lost. */
  loses(): boolean
  counts: { pushed: number; lostPushes: number }
}

type Push = { guard: string; lane: string; view: BreakerView } | 'gap'

export class DelayedPush {
  readonly #options: PushLineOptions
  readonly #watchers = new Set<BreakerWatcher>()
  readonly #line: FifoDelay<Push>
  #unsubscribe: (() => void) | undefined
  #up = true

  constructor(options: PushLineOptions) {
    this.#options = options
    this.#line = new FifoDelay(options.clock, (push) => this.#deliver(push))
  }

  watch(watcher: BreakerWatcher): () => void {
    this.#watchers.add(watcher)
    if (this.#up && this.#unsubscribe === undefined) this.#subscribe()
    return () => {
      this.#watchers.delete(watcher)
      if (this.#watchers.size === 0) this.#leave()
    }
  }

  goDown(): void {
    this.#up = false
    this.#leave()
  }

  comeBack(): void {
    this.#up = true
    if (this.#watchers.size > 0) this.#subscribe()
  }

  /** Permanently. */
  close(): void {
    this.goDown()
    this.#watchers.clear()
  }

  /** Changes before the subscription arrives are missed, so a gap is reported first. */
  #subscribe(): void {
    const { clock, store, drawHalfMs } = this.#options
    const halfMs = drawHalfMs()
    const arriving = clock.schedule(halfMs, () => {
      this.#unsubscribe = store().breakers.watch({
        onView: (guard, lane, view) => this.#push({ guard, lane, view: copyMessage(view) }),
        onGap: () => this.#line.send('gap', drawHalfMs()),
      })
      this.#line.send('gap', halfMs)
    })
    arriving.unref()
    this.#unsubscribe = () => arriving.cancel()
  }

  #push(push: Push): void {
    const { loses, drawHalfMs, counts } = this.#options
    if (loses()) counts.lostPushes++
    else this.#line.send(push, drawHalfMs())
  }

  #deliver(push: Push): void {
    this.#options.counts.pushed++
    for (const each of this.#watchers) {
      if (push === 'gap') each.onGap()
      else each.onView(push.guard, push.lane, copyMessage(push.view))
    }
  }

  #leave(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#options.counts.lostPushes += this.#line.clear()
  }
}
