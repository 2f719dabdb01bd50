import type { Scenario } from '../scenario/scenario.js'

export const failing: Scenario = {
  name: 'failing',
  title: 'A vendor whose error rate rises to 100 %',
  story:
    'The error rate rises from 0 to 100 % and falls again. Retries without a budget multiply the load when the vendor can bear it least: three attempts on each of two levels make nine calls. A retry budget is earned by successful calls, so no retries are left when every call fails. The breaker then stops the rest.',
  durationMs: '48s',
  pods: 4,
  vendor: { serviceMs: { min: 40, max: 60 }, capacity: 60 },
  guard: {
    queue: { size: 50, timeoutMs: 500 },
    breaker: { failureRate: 0.5, windowMs: '5s', minimumCalls: 20, openMs: '2s' },
    concurrency: { limit: 30 },
    timeout: { callMs: '1s' },
    retry: { attempts: 3, budget: 0.1, baseMs: 50 },
  },
  naive: { attempts: 3, backoff: 'exponential', delayMs: 50 },
  clients: [{ name: 'users', rps: 200, timeoutMs: '2s', retries: { attempts: 2, delayMs: 200 } }],
  events: [
    { atMs: '6s', vendor: { fail: 0.1 } },
    { atMs: '12s', vendor: { fail: 0.3 } },
    { atMs: '18s', vendor: { fail: 0.6 } },
    { atMs: '24s', vendor: 'fail' },
    { atMs: '34s', vendor: 'recover' },
  ],
  expect: [
    {
      metric: 'amplification',
      atMost: 1.1,
      says: 'calls at the vendor for each request, on the whole',
    },
    {
      metric: 'amplification',
      fromMs: '25s',
      untilMs: '34s',
      atMost: 0.2,
      says: 'and while nothing works',
    },
    {
      metric: 'endedP99Ms',
      fromMs: '25s',
      untilMs: '34s',
      atMost: 500,
      says: 'requests that cannot be served end soon',
    },
    { metric: 'served', fromMs: '40s', atLeast: 0.99, says: 'all is well again afterwards' },
  ],
}
