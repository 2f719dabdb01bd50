/** One seed always gives exactly one history; another seed gives a different one. */
import { SCENARIOS, type Scenario, simulate } from '@spillway/simulator'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

const named = (name: string) => SCENARIOS.find((each) => each.name === name)!

/** A scenario with every kind of event. */
const eventful: Scenario = {
  ...named('store-loss'),
  name: 'eventful',
  durationMs: '20s',
  clocks: { skewMs: '10s', driftPpm: 300 },
  store: { latencyMs: { median: 1, p99: 8 } },
  vendor: {
    serviceMs: { median: 100, p99: 600 },
    travelMs: { min: 1, max: 9 },
    capacity: 40,
    limits: [{ limit: 300, windowMs: '10s' }],
    failureRate: 0.02,
    hangRate: 0.001,
    cancels: true,
  },
  autoscale: { min: 3, max: 9, perPod: 1, everyMs: '2s', startMs: '1s' },
  clients: [
    {
      name: 'users',
      rps: 40,
      users: 10,
      timeoutMs: '4s',
      retries: { attempts: 2, delayMs: { min: 10, max: 90 } },
      hangUps: { share: 0.1, afterMs: { min: 20, max: 400 } },
    },
    { name: 'callers', callers: 5, thinkMs: { min: 0, max: 50 }, timeoutMs: '2s', priority: 'low' },
    { name: 'batch', burst: 30, fromMs: '5s', pod: 1, timeoutMs: '3s', cost: { tokens: 3 } },
  ],
  events: [
    { atMs: '2s', store: { loseReplies: 0.05 } },
    { atMs: '3s', pods: { start: 2, everyMs: '1s' } },
    { atMs: '4s', calls: 'fail', pod: 1 },
    { atMs: '6s', calls: 'recover', pod: 1 },
    { atMs: '6s', store: 'pause' },
    { atMs: '7s', store: 'resume' },
    { atMs: '8s', pods: { kill: 1 } },
    { atMs: '9s', store: { latencyMs: 5 } },
    { atMs: '9s', store: 'down', pod: 3 },
    { atMs: '10s', store: 'up', pod: 3 },
    { atMs: '10s', vendor: { slow: 2 } },
    { atMs: '11s', vendor: { fail: 0.5 } },
    { atMs: '12s', vendor: 'recover' },
    { atMs: '12s', vendor: { slowStart: { from: 5, overMs: '2s' } } },
    { atMs: '13s', pods: { roll: 2, everyMs: '1s' } },
    { atMs: '15s', vendor: { throttleMs: '1s' } },
    { atMs: '16s', store: 'restart' },
    { atMs: '17s', vendor: { hang: 0.1 } },
    { atMs: '18s', pods: { stop: 1 } },
  ],
}

const REPEATED = usualOrLong([named('burst'), eventful], [...SCENARIOS, eventful])
const DIFFERING = usualOrLong([named('burst')], [named('burst'), eventful])
const ARRIVING = usualOrLong({ ...named('pause'), durationMs: '9s' }, named('pause'))

async function historyOf(scenario: Scenario, seed: number): Promise<string> {
  return JSON.stringify({ ...(await simulate(scenario, { seed })), seed: 0 })
}

describe('simulator seed', () => {
  it.each(REPEATED)('scenario $name gives the same result for the same seed', async (scenario) => {
    const one = await historyOf(scenario, 5)
    expect((await historyOf(scenario, 5)) === one).toBe(true)
  })

  it.each(DIFFERING)('scenario $name gives another result for another seed', async (scenario) => {
    expect((await historyOf(scenario, 6)) === (await historyOf(scenario, 5))).toBe(false)
  })

  it('both runs of a simulation have the same arrivals', async () => {
    const { spillway, naive } = await simulate(ARRIVING)
    expect(naive.series.offered).toEqual(spillway.series.offered)
  })
})
