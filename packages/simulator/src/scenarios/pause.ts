import type { Scenario } from '../scenario/scenario.js'

/** The vendor can do 200 a second; 140 come. */
export const pause: Scenario = {
  name: 'pause',
  title: 'A pause of one second, and clients that retry at once',
  story:
    'A vendor at 70 % of its capacity stops for one second (a garbage collection, a failover). Clients wait half a second and retry, up to five times. Without protection the vendor works on requests whose callers have left, long after it has recovered: an overload that sustains itself.',
  durationMs: '18s',
  pods: 4,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 20 },
  guard: {
    shed: { maxQueue: 10 },
    queue: { size: 10, timeoutMs: 300 },
    concurrency: { limit: 5, graceMs: 10_000 },
    timeout: { callMs: 400 },
    retry: { attempts: 2, baseMs: 50 },
  },
  naive: { attempts: 1, timeoutMs: 500 },
  clients: [{ name: 'users', rps: 140, timeoutMs: 500, retries: { attempts: 5, delayMs: 20 } }],
  events: [
    { atMs: '6s', vendor: 'pause' },
    { atMs: '7s', vendor: 'recover' },
  ],
  expect: [
    {
      metric: 'served',
      fromMs: '12s',
      atLeast: 0.95,
      says: 'five seconds after the pause, requests served',
    },
    { metric: 'recoveredMs', fromMs: '7s', atMost: 5_000, says: 'time to recover after the pause' },
    { metric: 'amplification', atMost: 1.2, says: 'calls at the vendor for each request' },
  ],
}
