import type { Scenario } from '../scenario/scenario.js'

export const retryStorm: Scenario = {
  name: 'retry-storm',
  title: 'A full pod, and a vendor that fails half of its calls',
  story:
    'For fifteen seconds one pod gets more requests than its slots can serve, and the vendor fails every other call. Three attempts per call double the work when no slot is free: retries take the slots of requests that have not been tried once. A guard does not retry while its slots and its queue are full, nor beyond its budget, so nearly every slot serves a first attempt. When the load falls and the vendor still fails, retries begin again.',
  durationMs: '30s',
  pods: 1,
  store: 'memory',
  vendor: { serviceMs: { min: 40, max: 60 }, failureRate: 0 },
  guard: {
    queue: { size: 40, timeoutMs: '1s' },
    concurrency: { limit: 10 },
    timeout: { callMs: '1s' },
    retry: { attempts: 3, budget: 1, baseMs: 20 },
  },
  naive: { attempts: 3, timeoutMs: '1s', backoff: 'exponential', delayMs: 20, concurrency: 10 },
  clients: [
    { name: 'users', rps: 100, timeoutMs: '2s' },
    { name: 'crowd', rps: 250, fromMs: '5s', untilMs: '20s', timeoutMs: '2s' },
  ],
  events: [
    { atMs: '5s', vendor: { fail: 0.5 } },
    { atMs: '26s', vendor: 'recover' },
  ],
  expect: [
    {
      metric: 'attemptsPerCall',
      fromMs: '7s',
      untilMs: '20s',
      atMost: 1.1,
      says: 'attempts of each call that started, while the pod is full',
    },
    {
      metric: 'served',
      fromMs: '22s',
      untilMs: '26s',
      atLeast: 0.6,
      says: 'with free slots, retries turn failures into answers',
    },
    { metric: 'served', fromMs: '27s', atLeast: 0.98, says: 'all is well again afterwards' },
  ],
}
