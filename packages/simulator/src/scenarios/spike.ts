import type { Scenario } from '../scenario/scenario.js'

export const spike: Scenario = {
  name: 'spike',
  title: 'Low-priority traffic at twelve times the capacity',
  story:
    'Paying users need half of the capacity. Then free users send twelve times the capacity for six seconds. Without priorities all users fail alike. With priorities paying users hardly notice.',
  durationMs: '14s',
  pods: 2,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 20 },
  guard: {
    shed: { maxQueue: 40, tiers: { free: 0.5 } },
    queue: { size: 40, timeoutMs: 400 },
    concurrency: { limit: 10 },
    timeout: { callMs: 800 },
  },
  naive: { attempts: 2, timeoutMs: '1s', delayMs: 50 },
  clients: [
    { name: 'paying', rps: 100, priority: 'high', tier: 'paying', timeoutMs: '1s' },
    {
      name: 'free',
      rps: 2_400,
      fromMs: '3s',
      untilMs: '9s',
      priority: 'low',
      tier: 'free',
      timeoutMs: '1s',
    },
  ],
  expect: [
    { metric: 'served', client: 'paying', atLeast: 0.994, says: 'paying users served' },
    { metric: 'p99Ms', client: 'paying', atMost: 500, says: 'and in time' },
    {
      metric: 'goodput',
      fromMs: '4s',
      untilMs: '9s',
      atLeast: 0.9,
      says: 'nothing of the capacity is wasted',
    },
  ],
}
