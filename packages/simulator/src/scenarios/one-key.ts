import type { Scenario } from '../scenario/scenario.js'

export const oneKey: Scenario = {
  name: 'one-key',
  title: 'Eight pods share one key with 600 calls per minute',
  story:
    'Eight pods share an API key that allows 600 calls in any minute. The pods’ clocks are wrong, and one in fifty replies of the store is lost. Demand is twice the limit. The fleet must never exceed the contract in any minute, wherever that minute begins: vendors ban keys that do.',
  durationMs: '5m',
  pods: 8,
  clocks: { skewMs: '30s', driftPpm: 200 },
  store: { latencyMs: { min: 0.5, max: 3 } },
  vendor: {
    serviceMs: { median: 200, p99: 900 },
    travelMs: { min: 1, max: 20 },
    limits: [{ limit: 600, windowMs: '1m' }],
  },
  guard: {
    limits: [{ limit: 600, windowMs: '1m' }],
    jitterMs: 100,
    queue: { size: 50, timeoutMs: '2s' },
    concurrency: { limit: 50 },
    timeout: { callMs: '5s' },
    retry: { attempts: 3 },
  },
  naive: { attempts: 3, timeoutMs: '5s', backoff: 'exponential', delayMs: 200 },
  clients: [{ name: 'users', rps: 20, timeoutMs: '5s' }],
  events: [{ atMs: '0s', store: { loseReplies: 0.02 } }],
  expect: [
    { metric: 'worstWindow', atMost: 1, says: 'the fullest minute, as a share of the contract' },
    { metric: 'throttled', atMost: 0, says: 'answers of 429' },
    {
      metric: 'served',
      fromMs: '1m',
      untilMs: '5m',
      atLeast: 0.45,
      says: 'of twice the contract, served',
    },
  ],
}
