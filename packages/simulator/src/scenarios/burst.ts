import type { Scenario } from '../scenario/scenario.js'

export const burst: Scenario = {
  name: 'burst',
  title: '500 requests to one pod at once',
  story:
    'A batch job sends 500 requests to one pod at once, beside its normal traffic. Without a queue the vendor gets ten times its capacity: each request slows down the others, times out and is retried. With a queue and a concurrency limit the pod sends 50 at a time, and every request is served.',
  durationMs: '12s',
  pods: 1,
  store: 'memory',
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 50, beyondCapacity: 'slow' },
  guard: {
    queue: { size: 600, timeoutMs: '5s' },
    concurrency: { limit: 50 },
    timeout: { callMs: '1s' },
    retry: { attempts: 3, baseMs: 50 },
  },
  naive: { attempts: 3, timeoutMs: 500, backoff: 'none' },
  clients: [
    { name: 'batch', burst: 500, fromMs: '3s', timeoutMs: '5s' },
    { name: 'others', rps: 50, timeoutMs: '5s', priority: 'high' },
  ],
  expect: [
    { metric: 'served', client: 'batch', atLeast: 0.99, says: 'of the batch, served' },
    { metric: 'served', client: 'others', atLeast: 0.99, says: 'of the others, served' },
    { metric: 'p99Ms', client: 'others', atMost: 300, says: 'and the others hardly notice' },
    { metric: 'vendorAtOnce', atMost: 1, says: 'calls at once, as a share of what it can work on' },
  ],
}
