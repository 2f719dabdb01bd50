/** Registers this pod as waiting with its permit requests, and receives the wake-ups of the store. */
import type { LimitStore, TakeReply, TakeRequest } from '../../store/port.js'

export type Waiter = NonNullable<TakeRequest['waiter']>

export interface WakeUpsOptions {
  name: string
  pod: string
  store: LimitStore
  /** Capacity of a lane may have become free. */
  onGivenBack(lane: string): void
  /** Limits were changed, or messages may have been missed. */
  onLimitsChanged(): void
}

/** Calls of a queue without a timeout wait for ever; the store needs a finite number. */
const LONGEST_WAIT_US = 86_400_000_000

export class WakeUps {
  readonly #options: WakeUpsOptions
  #lastWaiter: Waiter | undefined
  /** Set when the first call waits: until then there is nothing to wake. */
  #stopListening: (() => void) | undefined
  #closed = false

  constructor(options: WakeUpsOptions) {
    this.#options = options
  }

  /** Mostly the same object as for the last request: calls without a deadline can wait equally long. */
  waiterFor(waitMs: number): Waiter | undefined {
    if (waitMs <= 0) return undefined
    const forUs = Math.min(Math.ceil(waitMs * 1_000), LONGEST_WAIT_US)
    if (this.#lastWaiter?.forUs !== forUs) this.#lastWaiter = { pod: this.#options.pod, forUs }
    return this.#lastWaiter
  }

  /** Starts to listen as soon as a call waits. */
  replied({ waitUs }: TakeReply, waiter: Waiter | undefined): void {
    if (waiter === undefined || waitUs === 0 || waitUs > waiter.forUs) return
    if (this.#stopListening !== undefined || this.#closed) return
    const { name, pod, store, onGivenBack, onLimitsChanged } = this.#options
    this.#stopListening = store.watch(pod, {
      onFreed: (guard, lane) => {
        if (guard !== name) return
        if (lane === undefined) onLimitsChanged()
        else onGivenBack(lane)
      },
      onGap: onLimitsChanged,
    })
  }

  close(): void {
    this.#closed = true
    this.#stopListening?.()
  }
}
