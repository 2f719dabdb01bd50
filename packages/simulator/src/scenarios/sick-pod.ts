import type { Scenario } from '../scenario/scenario.js'

export const sickPod: Scenario = {
  name: 'sick-pod',
  title: 'One pod of eight loses its connection to the vendor',
  story:
    'Calls of one pod get no answer: a broken route, a dead proxy. Without a quorum it would hold every eighth request until the caller gives up. With a quorum the pod detects that only it is affected, stops calling and refuses immediately, so that callers can use another pod. The other seven continue, because one failing pod does not mean a failing vendor.',
  durationMs: '30s',
  pods: 8,
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: 60 },
  guard: {
    queue: { size: 30, timeoutMs: 500 },
    breaker: {
      failureRate: 0.5,
      windowMs: '5s',
      minimumCalls: 10,
      openMs: '3s',
      quorum: 3,
    },
    concurrency: { limit: 20, graceMs: '1s' },
    timeout: { callMs: 500 },
    retry: { attempts: 2, baseMs: 50 },
  },
  naive: { attempts: 3, timeoutMs: '2s' },
  clients: [{ name: 'users', rps: 240, timeoutMs: '2s', retries: { attempts: 3, delayMs: 20 } }],
  events: [
    { atMs: '8s', calls: 'hang', pod: 0 },
    { atMs: '22s', calls: 'recover', pod: 0 },
  ],
  expect: [
    { metric: 'opens', atMost: 0, says: 'the breaker opens for the fleet' },
    {
      metric: 'served',
      fromMs: '8s',
      untilMs: '22s',
      atLeast: 0.99,
      says: 'requests served meanwhile',
    },
    {
      metric: 'endedP99Ms',
      fromMs: '10s',
      untilMs: '22s',
      atMost: 1_000,
      says: 'longest that any but one in a hundred takes',
    },
    { metric: 'served', fromMs: '26s', atLeast: 0.99, says: 'requests served afterwards' },
  ],
}
