import type { Scenario } from '../scenario/scenario.js'

export const storeLoss: Scenario = {
  name: 'store-loss',
  title: 'The store hangs, dies, and comes back empty',
  story:
    'All pods share one contract through one store. The store hangs for five seconds. Later it is killed and comes back empty. Meanwhile each pod continues with its share of what was left, so the vendor never gets more than it allows, and very few calls are refused.',
  durationMs: '2m',
  pods: 6,
  vendor: {
    serviceMs: { min: 60, max: 140 },
    travelMs: { min: 1, max: 5 },
    limits: [{ limit: 300, windowMs: '10s' }],
  },
  guard: {
    limits: [{ limit: 300, windowMs: '10s' }],
    breaker: { failureRate: 0.5, openMs: '5s' },
    queue: { size: 20, timeoutMs: '2s' },
    concurrency: { limit: 20 },
    timeout: { callMs: '2s' },
    retry: { attempts: 2 },
  },
  naive: { attempts: 3, timeoutMs: '2s', backoff: 'exponential' },
  clients: [{ name: 'users', rps: 40, timeoutMs: '4s' }],
  events: [
    { atMs: '20s', store: 'pause' },
    { atMs: '25s', store: 'resume' },
    { atMs: '55s', store: 'down' },
    { atMs: '65s', store: 'restart' },
    { atMs: '65s', store: 'up' },
  ],
  expect: [
    { metric: 'worstWindow', atMost: 1.05, says: 'the fullest window, as a share of the contract' },
    { metric: 'throttled', atMost: 0, says: 'answers of 429' },
    {
      metric: 'served',
      fromMs: '20s',
      untilMs: '30s',
      atLeast: 0.4,
      says: 'served while it stands',
    },
    { metric: 'served', fromMs: '90s', atLeast: 0.65, says: 'served when it is shared again' },
  ],
}
