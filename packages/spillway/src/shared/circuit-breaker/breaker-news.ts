/** Who hears of what becomes of a breaker: listeners of its changes, and the stream of events. */
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

export class BreakerNews {
  readonly #name: string
  readonly #shadow: boolean
  readonly #listeners = new Set<ChangeListener>()
  readonly #ownListeners = new Set<ChangeListener>()

  /** `shadow`: a refusal is only told. */
  constructor(name: string, shadow: boolean) {
    this.#name = name
    this.#shadow = shadow
  }

  onChange(listener: ChangeListener): () => void {
    return addTo(this.#listeners, listener)
  }

  /** Of this pod's own breakers. */
  onOwnChange(listener: ChangeListener): () => void {
    return addTo(this.#ownListeners, listener)
  }

  changed(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    if (listening()) emit({ type: EVENT[to], name: this.#name, lane, from })
    this.#tell(this.#listeners, { name: this.#name, lane, from, to })
  }

  /** The pod's own breaker, and not that of the fleet. */
  changedAlone(lane: string, from: BreakerStateName, to: BreakerStateName): void {
    const name = this.#name
    if (to === 'open' && listening()) emit({ type: 'breaker.self-isolated', name, lane })
    this.#tell(this.#ownListeners, { name, lane, from, to })
  }

  /** Reads how things stand only if somebody listens: refusing has to be cheap. */
  refused(breaker: { readonly lane: string; readonly state: BreakerStateName }): void {
    if (!listening()) return
    const { lane, state } = breaker
    emit({ type: 'breaker.refused', name: this.#name, lane, state, shadow: this.#shadow })
  }

  #tell(listeners: ReadonlySet<ChangeListener>, change: BreakerChange): void {
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
