import type { Scenario } from '../scenario/scenario.js'

export const burst: Scenario = {
  name: 'burst',
  title: 'Five hundred requests at one pod, in one moment',
  story:
    'A batch job sends 500 requests to one pod at once, beside what the pod does anyway. Sent on at once they are ten times what the vendor works on; each is slower for all the others, times out and is tried again. With a queue to wait in and so many at once, all of them are served, one after the other.',
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
