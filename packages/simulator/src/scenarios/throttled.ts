import type { Scenario } from '../scenario/scenario.js'

export const throttled: Scenario = {
  name: 'throttled',
  title: 'A hundred clients, and a vendor that answers 429',
  story:
    'The vendor allows a quarter of the configured limit and answers 429 with Retry-After. With exponential backoff each caller finds out on its own, again and again. With Spillway the first 429 pauses the whole fleet until the vendor’s reset time.',
  durationMs: '2m',
  pods: 4,
  vendor: {
    serviceMs: { min: 80, max: 160 },
    limits: [{ limit: 200, windowMs: '10s' }],
  },
  guard: {
    limits: [{ limit: 800, windowMs: '10s' }],
    queue: { size: 60, timeoutMs: '15s' },
    concurrency: { limit: 10 },
    timeout: { callMs: '2s' },
    retry: { attempts: 4, budget: 0.2, baseMs: 200 },
  },
  naive: { attempts: 5, timeoutMs: '2s', backoff: 'exponential', delayMs: 200 },
  clients: [{ name: 'clients', callers: 100, thinkMs: { min: 200, max: 600 }, timeoutMs: '20s' }],
  expect: [
    {
      metric: 'throttledOfNaive',
      atMost: 0.1,
      says: 'answers of 429, as a share of those with exponential backoff alone',
    },
    { metric: 'served', fromMs: '10s', untilMs: '2m', atLeast: 0.95, says: 'requests served' },
  ],
}
