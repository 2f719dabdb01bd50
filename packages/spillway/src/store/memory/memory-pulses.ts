/** Epochs within one process: this store never loses data. */
import type { PulseStore } from '../port.js'
import { type PulseState, pulse, type Shares } from '../pulse.js'

export function createMemoryPulses(nowUs: () => number): PulseStore {
  const guards = new Map<string, { state: PulseState | undefined; shares: Shares }>()
  return {
    pulse(request) {
      const own = guards.get(request.guard) ?? { state: undefined, shares: new Map() }
      const { state, reply } = pulse(own.state, own.shares, request, '', nowUs())
      guards.set(request.guard, { state, shares: own.shares })
      return reply
    },
  }
}
