/** Publishes the changes and refusals of a breaker: to listeners, and as events. */
import { callSafely, emit, listening } from '../../core/events.js'
import { swallow } from '../../core/thenable.js'
import type { BreakerChange, BreakerStateName } from './api.js'

export type ChangeListener = (change: BreakerChange) => unknown

const EVENT = {
  closed: 'breaker.closed',
  open: 'breaker.opened',
  'half-open': 'breaker.half-opened',
  isolated: 'breaker.isolated',
} as const

export class ChangeEvents {
  readonly #name: string
  readonly #shadow: boolean
  readonly #silent: boolean
  readonly #listeners = new Set<ChangeListener>()
  readonly #ownListeners = new Set<ChangeListener>()

  /** `shadow`: refusals are published, and the calls are made anyway. `silent`: only listeners are called. */
  constructor(name: string, shadow: boolean, silent = false) {
    this.#name = name
    this.#shadow = shadow
    this.#silent = silent
  }

  /** Returns a function that removes the listener. */
  onChange(listener: ChangeListener): () => void {
    return addTo(this.#listeners, listener)
  }

  /** For changes of this pod's own breakers, which exist with a quorum. */
  onOwnChange(listener: ChangeListener): () => void {
    return addTo(this.#ownListeners, listener)
  }

  changed(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    if (!this.#silent && listening()) emit({ type: EVENT[to], name: this.#name, lane, from })
    this.#notify(this.#listeners, { name: this.#name, lane, from, to })
  }

  /** The breaker of this pod alone has changed. */
  ownChanged(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    const name = this.#name
    if (to === 'open' && listening()) emit({ type: 'breaker.self-isolated', name, lane })
    this.#notify(this.#ownListeners, { name, lane, from, to })
  }

  /** Reads the state only if there is a listener, because refusing has to be cheap. */
  refused(breaker: { readonly lane: string; readonly state: BreakerStateName }): void {
    if (this.#silent || !listening()) return
    const { lane, state } = breaker
    emit({ type: 'breaker.refused', name: this.#name, lane, state, shadow: this.#shadow })
  }

  #notify(listeners: ReadonlySet<ChangeListener>, change: BreakerChange): void {
    for (const listener of listeners) {
      callSafely(this.#name, 'onChange', () => swallow(listener(change)), undefined)
    }
  }
}

function addTo(listeners: Set<ChangeListener>, listener: ChangeListener): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}
