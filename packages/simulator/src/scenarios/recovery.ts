import type { Scenario } from '../scenario/scenario.js'

export const recovery: Scenario = {
  name: 'recovery',
  title: 'A thousand callers return when the breaker closes',
  story:
    'The vendor fails for ten seconds. A thousand callers retry, and all of them are waiting when it recovers. Released together they would overload it again. After closing, the breaker admits more calls step by step, and the concurrency limits of all pods add up to no more than the vendor’s capacity.',
  durationMs: '30s',
  pods: 5,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 50 },
  guard: {
    shed: { maxQueue: 60 },
    queue: { size: 60, timeoutMs: 500 },
    breaker: {
      failureRate: 0.5,
      windowMs: '5s',
      minimumCalls: 20,
      openMs: '2s',
      probes: 2,
      successes: 2,
      rampMs: '4s',
    },
    concurrency: { limit: 10 },
    timeout: { callMs: '1s' },
    retry: { attempts: 2, baseMs: 100 },
  },
  naive: { attempts: 3, timeoutMs: '1s', backoff: 'exponential' },
  clients: [
    {
      name: 'callers',
      callers: 1_000,
      thinkMs: { min: 2_000, max: 4_000 },
      timeoutMs: '1500ms',
      retries: { attempts: 4, delayMs: { min: 100, max: 500 } },
    },
  ],
  events: [
    { atMs: '8s', vendor: 'fail' },
    { atMs: '18s', vendor: 'recover' },
  ],
  expect: [
    {
      metric: 'vendorAtOnce',
      fromMs: '18s',
      atMost: 1,
      says: 'calls at the vendor after its return, as a share of its capacity',
    },
    { metric: 'probesAtOnce', atMost: 2, says: 'probes at once, in the whole fleet' },
    {
      metric: 'goodput',
      fromMs: '24s',
      atLeast: 0.5,
      says: 'good answers six seconds after its return, of what it can do',
    },
    {
      metric: 'amplification',
      fromMs: '12s',
      untilMs: '18s',
      atMost: 0.1,
      says: 'calls for each request while it fails',
    },
  ],
}
