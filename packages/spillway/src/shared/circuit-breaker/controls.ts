/** The operations of an operator on a breaker, for all pods at once. */
import { type Duration, duration, validate } from '../../core/options/checks.js'
import type { CircuitBreaker, LaneOption } from './api.js'
import type { BreakerLanes } from './breaker-lanes.js'

export type BreakerControls = Pick<
  CircuitBreaker,
  'state' | 'snapshot' | 'onChange' | 'isolate' | 'release' | 'trip' | 'reset'
>

/** `pod` is the holder of isolations that name none. */
export function createControls(breaker: BreakerLanes, pod: string): BreakerControls {
  return {
    state: ({ lane }: LaneOption = {}) => breaker.state(lane),
    snapshot: ({ lane }: LaneOption = {}) => breaker.snapshot(lane),
    onChange: (listener) => breaker.onChange(listener),
    async isolate(forMs: Duration, { lane, holder = pod } = {}) {
      const forUs = Math.ceil(validate('forMs', forMs, duration({ min: 1 })) * 1_000)
      await breaker.command(lane, { kind: 'isolate', holder, forUs })
    },
    release: ({ lane, holder = pod } = {}) => breaker.command(lane, { kind: 'release', holder }),
    trip: ({ lane } = {}) => breaker.command(lane, { kind: 'trip' }),
    reset: ({ lane } = {}) => breaker.command(lane, { kind: 'reset' }),
  }
}
