/** Speed of the simulator: virtual calls per second of real time, with real guards. */
import { type Scenario, simulateOnce } from '@spillway/simulator'
import type { Figure, Round, Suite } from '../measure.js'

/** Every stage is configured; calls are refused only by chance. */
const ORDINARY: Scenario = {
  name: 'ordinary',
  title: 'An ordinary minute of a small fleet',
  story: 'Nine stages; a vendor that fails now and then.',
  durationMs: '60s',
  pods: 4,
  store: 'memory',
  vendor: { serviceMs: { min: 40, max: 60 }, capacity: 100, failureRate: 0.005 },
  guard: {
    shed: { maxQueue: 100, tiers: { free: 0.7 } },
    userLimits: [{ per: 'user', limit: 6_000, windowMs: '1m' }],
    queue: { size: 100, timeoutMs: '1s' },
    breaker: { failureRate: 0.5, windowMs: '10s', minimumCalls: 20, openMs: '2s' },
    limits: [{ limit: 100_000, windowMs: '1m' }],
    pace: { limit: 1_000, windowMs: '1s' },
    concurrency: { limit: 25 },
    timeout: { callMs: '1s' },
    retry: { attempts: 3, baseMs: 50 },
  },
  clients: [{ name: 'users', rps: 1_200, users: 1_000, tier: 'free', timeoutMs: '2s' }],
  expect: [],
}
const REMOTE: Scenario = { ...ORDINARY, store: { latencyMs: 1 } }
const LEAST_SERVED = 0.99

/** Simulated calls per second of real time, on one core. */
function callsPerSecond(scenario: Scenario): Round {
  return async () => {
    const startMs = performance.now()
    const { totals } = await simulateOnce(scenario)
    const seconds = (performance.now() - startMs) / 1_000
    if (totals.served < totals.requests * LEAST_SERVED) throw new Error('calls were not served')
    return totals.requests / seconds
  }
}

const ROUNDS = { warmUp: 4, counted: 7 }

const inMemory: Figure = {
  name: 'simulated-calls-per-second',
  what: 'calls through real guards in virtual time, nine stages on, four pods on one store in memory, one core',
  unit: 'calls/s',
  target: { atLeast: 50_000 },
  rounds: ROUNDS,
  prepare: () => callsPerSecond(ORDINARY),
}

const overTheNetwork: Figure = {
  name: 'simulated-calls-per-second-remote',
  what: 'the same with a store latency of 1 ms',
  unit: 'calls/s',
  rounds: ROUNDS,
  prepare: () => callsPerSecond(REMOTE),
}

export const simulator: Suite = {
  name: 'simulator',
  what: 'speed of the simulator',
  benches: [inMemory, overTheNetwork],
}
