/**
 * Breakers of this pod alone, for while the store is away: the same transitions in memory, from where
 * the fleet's was when it was last heard of.
 */
import type { Clock } from '../core/clock.js'
import { breakerLifeUs, emptyBreaker } from './breaker/breaker-state.js'
import { createMemoryBreakers, type MemoryBreakers } from './memory/memory-breakers.js'
import { createMicroseconds } from './memory/microseconds.js'
import type { BreakerRef, BreakerView } from './port.js'

export interface LocalBreakers extends MemoryBreakers {
  /** Goes on from there: what was so for so long. */
  adopt(ref: BreakerRef, view: BreakerView, ageMs: number): void
}

/** Whoever isolated it in the fleet. */
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
      state.t = now
      state.v = view.version
      state.g = view.generation
      state.kind = view.kind
      state.u = ours(view.untilUs)
      state.d = spec.openUs
      state.o = view.openings
      state.c = ours(view.closedAtUs)
      if (view.isolatedUntilUs > 0) state.holds.set(HOLDER, ours(view.isolatedUntilUs))
      breakers.put(guard, lane, state, breakerLifeUs(state, spec, now))
    },
  }
}
