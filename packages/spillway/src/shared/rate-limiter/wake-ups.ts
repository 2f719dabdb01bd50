/** Receives the store's messages about capacity that became free while a call of this pod waits. */
import type { LimitStore } from '../../store/port.js'

export interface WakeUpsOptions {
  name: string
  pod: string
  store: LimitStore
  /** Capacity of a lane may have become free. */
  onGivenBack(lane: string): void
  /** Limits were changed, or messages may have been missed. */
  onLimitsChanged(): void
}

export class WakeUps {
  readonly #options: WakeUpsOptions
  #stopListening: (() => void) | undefined
  #closed = false

  constructor(options: WakeUpsOptions) {
    this.#options = options
  }

  /** Called when the first call waits: until then there is nothing to wake. */
  listen(): void {
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
