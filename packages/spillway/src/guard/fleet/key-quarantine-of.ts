/** The quarantine of the API keys that calls of a guard use, for the gateway. */
import type { SpillwayError } from '../../core/errors.js'
import { importanceOf } from '../../core/options/priority.js'
import { KeyQuarantine, type KeyState } from '../../shared/key-quarantine/key-quarantine.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import { watchStore } from '../../shared/outage/store-watch.js'
import type { ReplacingOptions } from '../decisions/replaced-call.js'
import type { Guard, SharedGuard } from '../guard.js'
import { internalsOf } from '../internals.js'
import type { Spillway } from '../spillway.js'

/**
 * Counts and logs a call that was refused because of its key, before it reached the guard. A call that has to wait for its
 * key would otherwise take a place in the queue, and permits.
 */
export function noteQuarantined(
  guard: Guard,
  error: SpillwayError,
  options: ReplacingOptions,
): void {
  const { calls, clock, lanes } = (guard as SharedGuard).parts
  const { counters, observers } = calls
  const lane = lanes.expected(options.lane ?? DEFAULT_LANE)
  const priority = importanceOf(options.priority ?? 'normal')
  const arrivedMs = clock.now()
  counters.calls++
  counters.refused(error, options.tier)
  const follower = observers.decisions?.begin(options, lane, priority, arrivedMs)
  observers.decisions?.refused(follower, error, () => ({ options, lane, priority, arrivedMs }))
}

/** Close it before the guard. */
export function createKeyQuarantine(spillway: Spillway, guard: Guard): KeyQuarantine {
  const inside = internalsOf(spillway)
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
