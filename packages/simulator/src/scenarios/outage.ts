import type { Scenario } from '../scenario/scenario.js'

export const outage: Scenario = {
  name: 'outage',
  title: 'A vendor is down for ten seconds at 93 % load',
  story:
    'A vendor with a capacity of 300 calls per second gets 280 and stops answering for ten seconds. Retries pile up: when the vendor recovers, it gets more than its capacity, so most calls fail and are retried again. With a breaker shared by the fleet no pod calls during the outage, and a few probes detect the recovery.',
  durationMs: '30s',
  pods: 8,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 30 },
  guard: {
    queue: { size: 20, timeoutMs: 500 },
    breaker: {
      consecutiveFailures: 20,
      failureRate: 0.5,
      windowMs: '5s',
      minimumCalls: 20,
      openMs: '1s',
      probes: 3,
      successes: 2,
      rampMs: '1s',
    },
    concurrency: { limit: 6, graceMs: 2_000 },
    timeout: { callMs: '1s' },
    retry: { attempts: 2, baseMs: 100 },
  },
  naive: { attempts: 3, timeoutMs: '1s', backoff: 'constant', delayMs: 100 },
  clients: [{ name: 'users', rps: 280, timeoutMs: '2s', retries: { attempts: 3, delayMs: 100 } }],
  events: [
    { atMs: '6s', vendor: 'pause' },
    { atMs: '16s', vendor: 'recover' },
  ],
  expect: [
    {
      metric: 'recoveredMs',
      fromMs: '16s',
      atMost: 2_000,
      says: 'back to normal within two timeouts of its return',
    },
    {
      metric: 'probesAtOnce',
      atMost: 3,
      says: 'one round of probes at a time, in the whole fleet',
    },
    { metric: 'served', fromMs: '18s', atLeast: 0.95, says: 'requests served after that' },
    { metric: 'amplification', atMost: 1.2 },
  ],
}
