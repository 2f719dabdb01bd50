import type { Scenario } from '../scenario/scenario.js'

export const outage: Scenario = {
  name: 'outage',
  title: 'Ten seconds without a vendor, at 280 of 300 calls a second',
  story:
    'A vendor that can do 300 calls a second gets 280, and answers nothing for ten seconds. What was lost piles up as retries: when it is back, it gets more than it can do, so most of that fails too and is tried again. With a breaker for the whole fleet nobody calls while it is away; a few probes find out that it is back.',
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
