/**
 * Breakers of this pod alone, for times when the store is unreachable: the same transitions in memory,
 * starting from the fleet's last known state.
 */
import { type Clock, createMicroseconds } from '../core/time/clock.js'
import { breakerLifeUs, CLOSED, emptyBreaker } from './breaker/breaker-state.js'
import { keepTotals } from './breaker/tally.js'
import { createMemoryBreakers, type MemoryBreakers } from './memory/memory-breakers.js'
import type { BreakerRef, BreakerView } from './port.js'

export interface LocalBreakers extends MemoryBreakers {
  /** Continues from this view, which is `ageMs` old. */
  adopt(ref: BreakerRef, view: BreakerView, ageMs: number): void
}

/** Represents all holders of an isolation in the fleet. */
const HOLDER = 'fleet'

export function createLocalBreakers(clock: Clock): LocalBreakers {
  const nowUs = createMicroseconds(clock)
  const breakers = createMemoryBreakers(nowUs, () => 1)
  return {
    ...breakers,
    adopt({ guard, lane, spec }, view, ageMs) {
      const now = nowUs()
      const ours = (us: number) => (us === 0 ? 0 : us - view.nowUs - ageMs * 1_000 + now)
      const state = emptyBreaker()
      state.timeUs = now
      state.version = view.version
      state.generation = view.generation
      state.kind = view.kind
      state.openUntilUs = ours(view.untilUs)
      state.openForUs = spec.openUs
      state.openings = view.openings
      state.closedAtUs = ours(view.closedAtUs)
      // Refusals name the counts that opened it. A closed breaker counts its own calls from zero.
      if (view.kind !== CLOSED) keepTotals(state.tally, view, now)
      if (view.isolatedUntilUs > 0) state.isolations.set(HOLDER, ours(view.isolatedUntilUs))
      breakers.put(guard, lane, state, breakerLifeUs(state, spec, now))
    },
  }
}
