import type { Scenario } from '../scenario/scenario.js'

export const learnedLimits: Scenario = {
  name: 'learned-limits',
  title: 'A vendor that allows less than configured, and later more',
  story:
    'Two pods are configured for 200 calls in 3 s, and sixty callers use all of it. The vendor allows 60, and 150 after 45 s. With `learn` the fleet lowers its limit to what the vendor accepts, and raises it again step by step. Without Spillway each caller finds out on its own.',
  durationMs: '90s',
  pods: 2,
  vendor: {
    serviceMs: { min: 30, max: 80 },
    travelMs: { min: 1, max: 10 },
    limits: [{ limit: 60, windowMs: '3s' }],
  },
  guard: {
    limits: [{ limit: 200, windowMs: '3s', learn: true }],
    queue: { size: 1_000, timeoutMs: '30s' },
    timeout: { callMs: '5s' },
  },
  naive: { attempts: 5, timeoutMs: '5s', backoff: 'exponential', delayMs: 200 },
  clients: [{ name: 'callers', callers: 60, thinkMs: { min: 5, max: 20 }, timeoutMs: '30s' }],
  events: [{ atMs: '45s', vendor: { limits: 2.5 } }],
  expect: [
    {
      metric: 'throttledShare',
      fromMs: '12s',
      atMost: 0.1,
      says: 'calls answered with 429, from the fifth window on',
    },
    {
      metric: 'limitUse',
      fromMs: '12s',
      untilMs: '45s',
      atLeast: 0.85,
      says: 'used of what the vendor allows, from the fifth window on',
    },
    {
      metric: 'limitUse',
      fromMs: '75s',
      atLeast: 0.85,
      says: 'used of the higher limit, ten windows after the rise',
    },
  ],
}
