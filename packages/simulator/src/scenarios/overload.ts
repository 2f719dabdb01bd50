import type { Scenario } from '../scenario/scenario.js'

/** Two pods, ten calls at once each: 200 a second. */
export const overload: Scenario = {
  name: 'overload',
  title: 'Two, five and ten times the vendor’s capacity',
  story:
    'Load rises from half of the capacity to 2, 5 and 10 times. Without protection every call waits until its answer is too late: work continues, and goodput falls to zero. With protection the vendor serves as many calls as it has capacity for, and the other calls are refused immediately.',
  durationMs: '16s',
  pods: 2,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 20 },
  guard: {
    shed: { maxQueue: 30 },
    queue: { size: 30, timeoutMs: 300 },
    concurrency: { limit: 10 },
    timeout: { callMs: 800 },
    retry: { attempts: 2 },
  },
  naive: { attempts: 2, timeoutMs: '1s', delayMs: 50 },
  clients: [
    { name: 'half', rps: 100, untilMs: '2s', timeoutMs: '1s' },
    { name: 'twice', rps: 400, fromMs: '2s', untilMs: '6s', timeoutMs: '1s' },
    { name: 'five times', rps: 1_000, fromMs: '6s', untilMs: '10s', timeoutMs: '1s' },
    { name: 'ten times', rps: 2_000, fromMs: '10s', untilMs: '14s', timeoutMs: '1s' },
  ],
  expect: [
    {
      metric: 'goodput',
      fromMs: '3s',
      untilMs: '6s',
      atLeast: 0.9,
      says: 'good answers at 2×, of what the vendor can do',
    },
    {
      metric: 'goodput',
      fromMs: '7s',
      untilMs: '10s',
      atLeast: 0.9,
      says: 'good answers at 5×, of what the vendor can do',
    },
    {
      metric: 'goodput',
      fromMs: '11s',
      untilMs: '14s',
      atLeast: 0.9,
      says: 'good answers at 10×, of what the vendor can do',
    },
    { metric: 'p99Ms', atMost: 500, says: 'admitted requests are served within half a second' },
    { metric: 'endedP99Ms', atMost: 500, says: 'refused requests end as quickly' },
  ],
}
