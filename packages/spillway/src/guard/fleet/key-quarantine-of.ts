/** The quarantine of the API keys that calls of a guard use, for the gateway. */
import { KeyQuarantine, type KeyState } from '../../shared/key-quarantine/key-quarantine.js'
import { watchStore } from '../../shared/outage/store-watch.js'
import type { Guard, SharedGuard } from '../guard.js'
import { insideOf } from '../internals.js'
import type { Spillway } from '../spillway.js'

/** Close it before the guard. */
export function createKeyQuarantine(spillway: Spillway, guard: Guard): KeyQuarantine {
  const inside = insideOf(spillway)
  if (inside === undefined) throw new TypeError('spillway must come from createSpillway()')
  const { clock, random, store } = inside
  const { pod } = spillway
  const { name, watch: known } = (guard as SharedGuard).parts
  const watch = known?.share() ?? watchStore(store, { name, pod, clock, random, expectedPods: 1 })
  if (known === undefined) watch?.start(undefined)
  const quarantine = new KeyQuarantine({ vendor: name, store, pod, clock, watch })
  quarantines.set(guard, quarantine)
  return quarantine
}

const quarantines = new WeakMap<Guard, KeyQuarantine>()

/** State of the keys that calls of this guard use, for dashboards. Empty: none are known. */
export function keyStatesOf(guard: Guard): KeyState[] {
  return quarantines.get(guard)?.states() ?? []
}
