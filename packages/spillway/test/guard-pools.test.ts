/** Guards whose lanes have limits of their own, or share the limits of a pool. */
import { describe, expect, it } from 'vitest'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createOperator } from '../src/operate/index.js'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  type GuardPod,
  vendorError,
  type Where,
} from './guard-pod.js'

const MINUTE = { windowMs: 60_000 }
const OPUS = ['claude-opus-4-1', 'claude-opus-4-5', 'claude-opus-4-5-fast'] as const
const OPTIONS: GuardOptions = {
  limits: [{ limit: 50, ...MINUTE }],
  lanes: [
    { match: 'gpt-4o-mini*', limits: [{ limit: 5, ...MINUTE }] },
    { match: 'claude-opus-4-*', pool: 'opus' },
  ],
  pools: { opus: { limits: [{ limit: 10, ...MINUTE }] } },
}

async function fatesOf(pod: GuardPod, lanes: readonly string[], times: number) {
  const calls = Array.from({ length: times }, (_, i) =>
    pod.quick({ lane: lanes[i % lanes.length] as string }),
  )
  await pod.clock.advance(100)
  return countFates(calls)
}

describe.each(EVERYWHERE)('with a store in %s,', (where: Where) => {
  const create = (options: GuardOptions = {}) =>
    createGuardPod({ ...OPTIONS, ...options }, { where })

  it('three lanes of a pool start exactly as many calls as the pool allows', async () => {
    const pod = create()
    expect(await fatesOf(pod, OPUS, 24)).toEqual({ resolved: 10, VENDOR_LIMITED: 14 })
    expect(await fatesOf(pod, ['gpt-4o-mini'], 8)).toEqual({ resolved: 5, VENDOR_LIMITED: 3 })
    expect(await fatesOf(pod, ['gpt-4o'], 8)).toEqual({ resolved: 8 })
  })

  it('a refusal names the limit of the pool', async () => {
    const pod = create()
    await fatesOf(pod, OPUS, 10)
    const refused = pod.quick({ lane: OPUS[0] })
    await pod.clock.advance(10)
    expect(refused.error).toMatchObject({
      code: 'VENDOR_LIMITED',
      details: { lane: OPUS[0], unit: 'requests', limit: 10, left: 0 },
    })
  })

  it('a call waits in the queue until the window of its pool has room', async () => {
    const pod = create({ queue: { size: 10, timeoutMs: '2m' } })
    await fatesOf(pod, OPUS, 10)
    const waiting = pod.quick({ lane: OPUS[1] })
    await pod.clock.advance(30_000)
    expect(waiting.state).toBe('pending')
    await pod.clock.advance(45_000)
    expect(waiting.state).toBe('resolved')
  })

  it('a 429 in one lane holds back the other lanes of the pool, and no lane outside', async () => {
    const pod = create({ queue: { size: 10, timeoutMs: '2m' } })
    // Used before, so that the pod knows the lane.
    await fatesOf(pod, OPUS, 3)
    pod.run(() => Promise.reject(vendorError(429, { 'retry-after': '20' })), { lane: OPUS[0] })
    await pod.clock.advance(10)
    const held = OPUS.map((lane) => pod.quick({ lane }))
    const outside = pod.quick({ lane: 'gpt-4o-mini' })
    await pod.clock.advance(10_000)
    expect(held.map(fateOf)).toEqual(['pending', 'pending', 'pending'])
    expect(outside.state).toBe('resolved')
    await pod.clock.advance(15_000)
    expect(held.map(fateOf)).toEqual(['resolved', 'resolved', 'resolved'])
  })

  it('the breaker of one lane in a pool leaves the other lanes closed', async () => {
    const pod = create({ breaker: { consecutiveFailures: 1, openMs: '1m' } })
    pod.run(() => Promise.reject(vendorError(500)), { lane: OPUS[0] })
    await pod.clock.advance(100)
    const [broken, other] = [pod.quick({ lane: OPUS[0] }), pod.quick({ lane: OPUS[1] })]
    await pod.clock.advance(100)
    expect([broken, other].map(fateOf)).toEqual(['CIRCUIT_OPEN', 'resolved'])
  })

  it('retries and hedges are charged to the pool', async () => {
    const pod = create({
      retry: { attempts: 2, baseMs: 1, budget: 1 },
      hedge: { delayMs: 50, lane: OPUS[2] },
    })
    let attempts = 0
    const retried = pod.run(() => (++attempts === 1 ? Promise.reject(vendorError(500)) : 'done'), {
      lane: OPUS[0],
    })
    await pod.clock.advance(40)
    expect(retried.state).toBe('resolved')
    const job = createJob()
    const hedged = pod.run(job.fn, { lane: OPUS[1] })
    await pod.clock.advance(100)
    expect(job.started).toBe(2)
    job.finish('answer')
    await pod.clock.advance(10)
    expect(hedged.value).toBe('answer')
    expect(await fatesOf(pod, OPUS, 10)).toEqual({ resolved: 6, VENDOR_LIMITED: 4 })
  })

  it('headroom of a lane follows its pool', async () => {
    const pod = create()
    await fatesOf(pod, [OPUS[0]], 8)
    await pod.clock.advance(1_500)
    await fatesOf(pod, [OPUS[1]], 1)
    await pod.clock.advance(1_500)
    expect(pod.guard.headroom(OPUS[1])).toBeCloseTo(0.1)
    expect(pod.guard.headroom('gpt-4o')).toBe(1)
  })

  it('jobs take their permits from the pool of their lane', async () => {
    const pod = create()
    await fatesOf(pod, [OPUS[0]], 8)
    const queue = pod.spillway.jobQueue<number, number>('batch', {
      guard: 'openai',
      lane: OPUS[1],
      keep: 0,
    })
    const done: number[] = []
    const worker = queue.work(({ data }) => done.push(data))
    await pod.clock.until(queue.addMany([1, 2, 3, 4].map((data) => ({ data }))))
    await pod.clock.advance(5_000)
    expect(done).toHaveLength(2)
    await pod.clock.advance(70_000)
    expect(done).toHaveLength(4)
    await pod.clock.until(worker.close())
  })

  it('limits of a pool in shadow mode refuse nothing and are counted', async () => {
    const pod = create({ shadow: ['vendor-limit'] })
    expect(await fatesOf(pod, OPUS, 15)).toEqual({ resolved: 15 })
    const { wouldHaveRefused } = pod.guard.snapshot()
    expect(wouldHaveRefused).toMatchObject([{ code: 'VENDOR_LIMITED', count: 5 }])
  })

  it('a replaced guard keeps the counts of its pools', async () => {
    const pod = create()
    await fatesOf(pod, OPUS, 10)
    const next = pod.spillway.replaceGuard('openai', { ...OPTIONS, basePauseMs: '1s' })
    const refused = next.run(() => 'done', { lane: OPUS[2] })
    await expect(pod.clock.until(refused)).rejects.toMatchObject({ code: 'VENDOR_LIMITED' })
  })
})

describe('operator', () => {
  it('pauses the pool of a lane, and overrides a limit of a pool', async () => {
    const pod = createGuardPod(OPTIONS)
    const operator = createOperator({ store: pod.store, guards: { openai: OPTIONS } })
    const by = { by: 'ann' }
    await operator.perform({ action: 'pause', guard: 'openai', lane: OPUS[0], forMs: '10s', ...by })
    expect(await fatesOf(pod, OPUS, 3)).toEqual({ VENDOR_LIMITED: 3 })
    await operator.perform({ action: 'resume', guard: 'openai', lane: OPUS[1], ...by })
    // A pod reads a pause again at the next call, a second after the last time.
    await pod.clock.advance(1_000)
    await fatesOf(pod, OPUS, 3)
    expect(await fatesOf(pod, OPUS, 3)).toEqual({ resolved: 3 })
    const set = { action: 'override', guard: 'openai', unit: 'requests@opus', limit: 5 } as const
    const done = await operator.perform({ ...set, forMs: '1h', ...by })
    expect(JSON.stringify(done)).toContain('limit on requests@opus is 5 in place of 10')
    expect(await fatesOf(pod, OPUS, 6)).toEqual({ resolved: 2, VENDOR_LIMITED: 4 })
    const [report] = (await operator.fleet()).guards
    expect(report?.limits).toContainEqual(
      expect.objectContaining({ lane: OPUS[0], id: 'requests@opus', limit: 5, used: 5 }),
    )
  })
})

describe('options lanes and pools', () => {
  const limits = [{ limit: 1, ...MINUTE }]
  const problemsOf = (options: GuardOptions): string => {
    try {
      createSpillway().guard('vendor', options)
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }

  it.each([
    [
      'an unknown pool',
      { lanes: [{ match: 'a', pool: 'opsu' }], pools: { opus: { limits } } },
      "lanes[0].pool: no pool 'opsu'; did you mean 'opus'?",
    ],
    ['a pool without pools', { lanes: [{ match: 'a', pool: 'x' }] }, 'there are no `pools`'],
    ['a pool without limits', { pools: { opus: { limits: [] } } }, 'pools.opus.limits: must be 1'],
    ['an unused pool', { limits, pools: { opus: { limits } } }, 'no entry of `lanes` uses'],
    ['an entry without limits', { lanes: [{ match: 'a' }] }, 'must have `limits`, a `pool`'],
    [
      'an entry that is never reached',
      {
        lanes: [
          { match: 'gpt-*', limits },
          { match: 'gpt-4o*', limits },
        ],
      },
      "lanes[1].match: is never reached: 'gpt-*' (entry 1)",
    ],
    [
      'a vendor-wide limit in an entry',
      { lanes: [{ match: 'a', limits: [{ ...limits[0], per: 'vendor' }] }] },
      "lanes[0].limits[0].per: must not be 'vendor' here",
    ],
  ] as [string, GuardOptions, string][])('%s is an error with its path', (_, options, message) => {
    expect(problemsOf(options)).toContain(message)
  })

  it('lanes that no entry matches have no limits if the guard has none', async () => {
    const pod = createGuardPod({ lanes: [{ match: 'small', limits }] })
    expect(await fatesOf(pod, ['small'], 3)).toEqual({ resolved: 1, VENDOR_LIMITED: 2 })
    expect(await fatesOf(pod, ['large'], 50)).toEqual({ resolved: 50 })
  })
})
