import type { Scenario } from '../scenario/scenario.js'

export const scale: Scenario = {
  name: 'scale',
  title: 'From ten pods to twenty, then all of them replaced',
  story:
    'Load doubles, and the fleet grows from ten pods to twenty. Later a rolling deploy replaces every pod, with five extra pods for a while. Limits kept by each pod would double with the fleet and restart with each new pod. A shared limit does not change.',
  durationMs: '2m',
  pods: 10,
  autoscale: { min: 10, max: 20, perPod: 1.2, everyMs: '5s', startMs: '3s' },
  vendor: {
    serviceMs: { median: 150, p99: 600 },
    travelMs: { min: 1, max: 5 },
    limits: [{ limit: 1_000, windowMs: '10s' }],
  },
  guard: {
    limits: [{ limit: 1_000, windowMs: '10s' }],
    breaker: { failureRate: 0.5, openMs: '5s' },
    queue: { size: 40, timeoutMs: '1s' },
    concurrency: { limit: 20 },
    timeout: { callMs: '3s' },
    retry: { attempts: 3 },
  },
  naive: { attempts: 3, timeoutMs: '3s', backoff: 'exponential' },
  clients: [
    { name: 'usual', rps: 80, timeoutMs: '4s' },
    { name: 'more', rps: 80, fromMs: '20s', timeoutMs: '4s' },
  ],
  events: [{ atMs: '60s', pods: { roll: 5, everyMs: '10s' } }],
  expect: [
    { metric: 'worstWindow', atMost: 1, says: 'the fullest window, as a share of the contract' },
    { metric: 'throttled', atMost: 0, says: 'answers of 429' },
    { metric: 'served', untilMs: '20s', atLeast: 0.99, says: 'served before the load doubles' },
    { metric: 'served', fromMs: '30s', atLeast: 0.55, says: 'served of 1.6 times the contract' },
  ],
}
