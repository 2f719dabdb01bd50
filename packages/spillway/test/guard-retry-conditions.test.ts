/** When a guard does not retry because of the state of its pod or of the lane. */
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../src/core/events.js'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { exposeToPrometheus } from '../src/observe/index.js'
import { createGuardPod, createJob, EVERYWHERE, vendorError } from './guard-pod.js'

type Scheduled = Extract<SpillwayEvent, { type: 'retry.scheduled' }>

let stopListening = () => {}
afterEach(() => stopListening())

/** Retries that were scheduled, each with what `note` returned at that moment. */
function collectRetries<N>(note: (event: Scheduled) => N): N[] {
  const retries: N[] = []
  stopListening = onEvent((event) => {
    if (event.type === 'retry.scheduled') retries.push(note(event))
  })
  return retries
}

const retry = { attempts: 3, budget: 1, baseMs: 10, jitter: 'none' } as const

describe('retries while the pod is full', () => {
  for (const where of EVERYWHERE) {
    for (const limit of [1, 5, 10, 20]) {
      it(`guard with ${limit} slots and a ${where} store schedules no retry while slots and queue are full`, async () => {
        const { clock, run, guard } = createGuardPod(
          {
            queue: { size: 200, timeoutMs: '1m', targetMs: '1m' },
            concurrency: { limit },
            limits: [{ limit: 100_000, windowMs: '1m' }],
            retry,
          },
          { where },
        )
        let running = 0
        let attempts = 0
        const pressures = collectRetries(() => (running + guard.snapshot().queue.waiting) / limit)
        for (let call = 0; call < 10 * limit; call++) {
          run(async () => {
            running++
            attempts++
            await sleep(clock, 10 + (call % 7))
            running--
            throw vendorError(503)
          })
        }
        await clock.advance(60_000)
        expect(Math.max(0, ...pressures)).toBeLessThanOrEqual(0.9)
        // Only calls of the last few slots find the pod less than full.
        expect(attempts).toBeLessThanOrEqual(10 * limit + 2 * limit)
        expect(attempts).toBeGreaterThan(10 * limit)
      })
    }
  }

  it('guard with one slot retries a call that is alone in the pod', async () => {
    const { clock, run } = createGuardPod({ concurrency: { limit: 1 }, queue: { size: 5 }, retry })
    const retries = collectRetries(({ attempt }) => attempt)
    run(() => Promise.reject(vendorError(503)))
    await clock.advance(1_000)
    expect(retries).toEqual([1, 2])
  })

  it('slot that the work of a timed-out call still keeps does not prevent the retry of that call', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 5 },
      timeout: { callMs: 100 },
      retry: { ...retry, attempts: 2 },
    })
    const retries = collectRetries(({ attempt }) => attempt)
    const call = run(({ attempt, signal }) =>
      attempt === 1
        ? new Promise((_, reject) => {
            signal.addEventListener('abort', () => void sleep(clock, 5).then(reject))
          })
        : 'done',
    )
    await clock.advance(1_000)
    expect(retries).toEqual([1])
    expect(call.value).toBe('done')
  })

  it('slot that the work of another timed-out call still keeps counts as in use', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 20 },
      timeout: { callMs: 100 },
      retry: { ...retry, attempts: 2 },
    })
    const retries = collectRetries(() => clock.now())
    for (let call = 0; call < 19; call++) run(() => new Promise(() => {}), { idempotent: false })
    await clock.advance(200)
    // No call is left, but the work of 19 keeps their slots.
    run(() => Promise.reject(vendorError(503)))
    await clock.advance(20_000)
    expect(retries).toEqual([])
  })

  it('lane with an adaptive limit schedules no retry while that lane is full, and other lanes still do', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { adaptive: 'aimd', min: 2, max: 2 },
      queue: { size: 100, timeoutMs: '1m', targetMs: '1m' },
      retry,
    })
    const retries = collectRetries(({ error }) => (error as { status: number }).status)
    const busy = createJob()
    for (let call = 0; call < 6; call++) run(busy.fn, { lane: 'full' })
    run(() => Promise.reject(vendorError(502)), { lane: 'empty' })
    await clock.settle()
    busy.fail(vendorError(503))
    await clock.advance(50)
    expect(retries).toEqual([502, 502])
  })

  it('hedge is not made from a pod whose slots are nearly all in use', async () => {
    const options: GuardOptions = {
      concurrency: { limit: 20 },
      hedge: { delayMs: 10 },
      timeout: { callMs: '10s' },
    }
    const { clock, run, guard } = createGuardPod(options)
    const job = createJob()
    for (let call = 0; call < 19; call++) run(job.fn, { idempotent: false })
    run(job.fn)
    await clock.advance(100)
    expect(guard.snapshot().hedges?.made).toBe(0)
    job.finish()
  })
})

describe('retries while calls wait long', () => {
  const reasons: Record<string, GuardOptions> = {
    'for the pace': { pace: { limit: 1, windowMs: '1s' } },
    'for a vendor limit': { limits: [{ limit: 1, windowMs: '1s' }] },
  }
  for (const where of EVERYWHERE) {
    for (const [reason, options] of Object.entries(reasons)) {
      it(`guard with a ${where} store schedules no retry while the oldest call has waited over 2 s ${reason}`, async () => {
        const { clock, run, guard } = createGuardPod(
          { ...options, queue: { size: 500, timeoutMs: '1h', targetMs: '1h' }, retry },
          { where },
        )
        const waits = collectRetries(() => guard.snapshot().queue.oldestMs)
        const calls = Array.from({ length: 30 }, () =>
          run(async () => {
            await sleep(clock, 10)
            throw vendorError(503)
          }),
        )
        await clock.advance(2_600)
        const { queue } = guard.snapshot()
        expect(queue.waiting).toBeGreaterThan(0)
        expect(queue.oldestMs).toBeGreaterThanOrEqual(2_590)
        await clock.advance(600_000)
        expect(Math.max(0, ...waits)).toBeLessThanOrEqual(2_000)
        expect(calls.every(({ state }) => state === 'rejected')).toBe(true)
        expect(guard.snapshot().queue.oldestMs).toBe(0)
      })
    }
  }

  it('spillway_queue_oldest_seconds reports the wait for the pace and for a vendor limit', async () => {
    for (const held of [
      { pace: { limit: 1, windowMs: '1m', burst: 1 } },
      { limits: [{ limit: 1, windowMs: '1m' }] },
    ] as const) {
      const { clock, quick, spillway } = createGuardPod({
        ...held,
        queue: { size: 10, timeoutMs: '1h', targetMs: '1h' },
      })
      for (let call = 0; call < 2; call++) quick()
      await clock.advance(2_600)
      const registry = new Registry()
      exposeToPrometheus({ spillway, registry })
      expect(await registry.metrics()).toContain(
        'spillway_queue_oldest_seconds{guard="openai"} 2.6',
      )
    }
  })

  it('maxQueueWaitMs lets batch work retry while its calls wait for the pace', async () => {
    const scheduledWith = async (maxQueueWaitMs: number) => {
      const { clock, run } = createGuardPod({
        pace: { limit: 1, windowMs: '1s' },
        queue: { size: 100, timeoutMs: '1h' },
        retry: { ...retry, attempts: 2, maxQueueWaitMs },
      })
      const retries = collectRetries(({ attempt }) => attempt)
      for (let call = 0; call < 10; call++) run(() => Promise.reject(vendorError(503)))
      await clock.advance(600_000)
      stopListening()
      return retries.length
    }
    expect(await scheduledWith(3_600_000)).toBe(10)
    expect(await scheduledWith(2_000)).toBeLessThan(10)
  })

  it('maxQueueWaitMs lets batch work retry while its calls wait for a vendor limit and slots are free', async () => {
    const { clock, run } = createGuardPod({
      concurrency: { limit: 10 },
      limits: [{ limit: 20, windowMs: '1s' }],
      queue: { size: 1_000, timeoutMs: '1h', targetMs: '1h' },
      retry: { ...retry, maxQueueWaitMs: '1h' },
    })
    const retries = collectRetries(({ attempt }) => attempt)
    for (let call = 0; call < 200; call++) {
      const fails = call % 10 === 5
      run(async ({ attempt }) => {
        await sleep(clock, 10)
        if (fails && attempt === 1) throw vendorError(503)
      })
    }
    await clock.advance(60_000)
    // The others fail while the calls of one window fill all slots.
    expect(retries.length).toBeGreaterThanOrEqual(8)
  })

  it.each([undefined, 3])(
    'calls that wait for the pause of one lane prevent retries in that lane only, with concurrency.limit %s',
    async (limit) => {
      const pod = createGuardPod({
        queue: { size: 100, timeoutMs: '1m' },
        ...(limit !== undefined && { concurrency: { limit } }),
        retry,
      })
      const { clock, run } = pod
      const late = createJob()
      run(late.fn, { lane: 'paused' })
      const pause = vendorError(429, { 'retry-after': '30' })
      run(() => Promise.reject(pause), { lane: 'paused', idempotent: false })
      await clock.advance(10)
      for (let call = 0; call < 4; call++) run(() => 'done', { lane: 'paused' })
      await clock.advance(5_000)
      const retries = collectRetries(({ error }) => (error as { status: number }).status)
      run(() => Promise.reject(vendorError(502)), { lane: 'other' })
      late.fail(vendorError(503))
      await clock.advance(1_000)
      expect(retries).toEqual([502, 502])
    },
  )

  it('call that waits behind retries of older calls counts with its own wait', async () => {
    const { clock, run, guard } = createGuardPod({
      concurrency: { limit: 1 },
      queue: { size: 100, timeoutMs: '1h', targetMs: '1h' },
      retry: { ...retry, maxQueueWaitMs: '1h' },
    })
    run(async ({ attempt }) => {
      await sleep(clock, 10)
      if (attempt === 1) throw vendorError(503)
    })
    await clock.advance(15)
    const job = createJob()
    run(job.fn)
    run(job.fn)
    await clock.advance(3_000)
    // The retry has joined in front, 5 ms after the call that has waited longest.
    expect(guard.snapshot().queue).toMatchObject({ waiting: 2, oldestMs: 3_000 })
    job.finish()
  })

  it('maxQueueWaitMs must be a duration from 0', () => {
    const create = (maxQueueWaitMs: number) => () =>
      createGuardPod({ retry: { ...retry, maxQueueWaitMs } })
    expect(create(-1)).toThrow(/retry\.maxQueueWaitMs/)
    expect(create(0)).not.toThrow()
  })
})

describe('retries at a high error rate', () => {
  const options: GuardOptions = { retry: { ...retry, attempts: 6, baseMs: 1 } }

  /** Makes first attempts without retries: this fraction of them fails. */
  function sendFirst(
    run: ReturnType<typeof createGuardPod>['run'],
    { calls, failing, lane = 'a' }: { calls: number; failing: number; lane?: string },
  ) {
    for (let call = 0; call < calls; call++) {
      const fails = call < calls * failing
      run(() => (fails ? Promise.reject(vendorError(503)) : 'done'), { lane, idempotent: false })
    }
  }

  async function retriesOfNext(pod: ReturnType<typeof createGuardPod>, lane = 'a') {
    const retries = collectRetries(({ attempt }) => attempt)
    pod.run(() => Promise.reject(vendorError(503)), { lane })
    await pod.clock.advance(1_000)
    stopListening()
    return retries.length
  }

  it.each([
    [0.1, 5],
    [0.19, 5],
    [0.25, 2],
    [0.49, 2],
    [0.6, 1],
    [1, 1],
  ])('at an error rate of %d a call is retried %i times', async (failing, retries) => {
    const pod = createGuardPod(options)
    sendFirst(pod.run, { calls: 200, failing })
    await pod.clock.advance(100)
    expect(await retriesOfNext(pod)).toBe(retries)
  })

  it('error rate of fewer than 20 first attempts does not limit retries', async () => {
    const pod = createGuardPod(options)
    sendFirst(pod.run, { calls: 18, failing: 1 })
    await pod.clock.advance(100)
    expect(await retriesOfNext(pod)).toBe(5)
    // That was the 19th. With the 20th the rate counts.
    expect(await retriesOfNext(pod)).toBe(1)
  })

  it('error rate of one lane does not limit the retries of another', async () => {
    const pod = createGuardPod(options)
    sendFirst(pod.run, { calls: 100, failing: 1, lane: 'bad' })
    await pod.clock.advance(100)
    expect(await retriesOfNext(pod, 'good')).toBe(5)
    expect(await retriesOfNext(pod, 'bad')).toBe(1)
  })

  it('failures of more than 10 s ago do not limit retries', async () => {
    const pod = createGuardPod(options)
    sendFirst(pod.run, { calls: 100, failing: 1 })
    await pod.clock.advance(12_000)
    // The budget is a fraction of the calls in its window.
    sendFirst(pod.run, { calls: 10, failing: 0 })
    expect(await retriesOfNext(pod)).toBe(5)
  })

  it('throttled and ignored attempts do not count in the error rate', async () => {
    const pod = createGuardPod({ ...options, basePauseMs: 1, maxPauseMs: 1 })
    for (const status of [400, 404, 422]) {
      for (let call = 0; call < 20; call++) {
        pod.run(() => Promise.reject(vendorError(status)), { lane: 'a' })
      }
    }
    sendFirst(pod.run, { calls: 30, failing: 0.6 })
    await pod.clock.advance(100)
    // 18 failures of 30, and not of 90.
    expect(await retriesOfNext(pod)).toBe(1)
  })

  it('failed retries do not raise the error rate', async () => {
    const pod = createGuardPod(options)
    sendFirst(pod.run, { calls: 100, failing: 0.1 })
    await pod.clock.advance(100)
    // Each of these makes six attempts; 15 first attempts of 105 have failed.
    for (let call = 0; call < 5; call++) expect(await retriesOfNext(pod)).toBe(5)
  })

  it('slow answers count as no failures in the error rate', async () => {
    const pod = createGuardPod({ ...options, breaker: { slowMs: 50, failureRate: 1 } })
    for (let call = 0; call < 100; call++) pod.run(() => sleep(pod.clock, 60), { lane: 'a' })
    await pod.clock.advance(100)
    sendFirst(pod.run, { calls: 25, failing: 1 })
    await pod.clock.advance(100)
    expect(await retriesOfNext(pod)).toBe(2)
  })
})

describe('reason of retry.stopped', () => {
  const failing = () => Promise.reject(vendorError(503))

  /** The reasons for which calls of a guard were not retried. */
  function collectReasons(): string[] {
    const reasons: string[] = []
    stopListening = onEvent((event) => {
      if (event.type === 'retry.stopped') reasons.push(event.because)
    })
    return reasons
  }

  it('retry.stopped says pod-full while slots and queue are full', async () => {
    const { clock, run } = createGuardPod({
      ...{ concurrency: { limit: 2 }, queue: { size: 20, timeoutMs: '1m' }, retry },
    })
    const reasons = collectReasons()
    for (let call = 0; call < 10; call++) run(() => sleep(clock, 10).then(failing))
    await clock.advance(10)
    expect(reasons).toEqual(['pod-full', 'pod-full'])
  })

  it('retry.stopped says queue-wait while the oldest call waits for the pace', async () => {
    const { clock, run } = createGuardPod({
      pace: { limit: 1, windowMs: 1_000, burst: 1 },
      queue: { size: 20, timeoutMs: '1m', targetMs: '1m' },
      retry,
    })
    for (let call = 0; call < 8; call++) run(() => sleep(clock, 1))
    await clock.advance(2_500)
    const reasons = collectReasons()
    run(failing, { priority: 'critical' })
    await clock.advance(600)
    expect(reasons).toEqual(['queue-wait'])
  })

  it('retry.stopped says error-rate where calls fail too often for another retry, else attempts or budget', async () => {
    const { clock, run } = createGuardPod({ retry })
    const reasons = collectReasons()
    run(failing)
    await clock.advance(1_000)
    expect(reasons.splice(0)).toEqual(['attempts'])
    for (let call = 0; call < 30; call++) run(() => Promise.reject(vendorError(501)))
    await clock.advance(0)
    expect(new Set(reasons.splice(0))).toEqual(new Set(['permanent']))
    run(failing)
    await clock.advance(1_000)
    expect(reasons).toEqual(['error-rate'])
    const frugal = createGuardPod({ retry: { ...retry, budget: 0 } })
    frugal.run(failing)
    await frugal.clock.advance(1_000)
    expect(reasons).toEqual(['error-rate', 'budget'])
  })

  it('retry.stopped says breaker while the circuit is open, and deadline if there is too little time', async () => {
    const { clock, run } = createGuardPod({
      breaker: { consecutiveFailures: 1, openMs: 60_000 },
      retry,
    })
    const reasons = collectReasons()
    run(failing)
    await clock.advance(1_000)
    expect(reasons.splice(0)).toEqual(['breaker'])
    const hurried = createGuardPod({ retry: { ...retry, baseMs: 500 } })
    hurried.run(failing, { timeoutMs: 100 })
    await hurried.clock.advance(1_000)
    expect(reasons).toEqual(['deadline'])
  })
})

describe('retries of an answer that was retried below', () => {
  it.each([
    ['without such a header', {}, 3],
    ['with spillway-retried', { 'spillway-retried': '1' }, 1],
    ['with x-should-retry: false', { 'x-should-retry': 'false' }, 1],
    ['with x-should-retry: true', { 'x-should-retry': 'true' }, 3],
  ])('a failed answer %s gets %j and is attempted %i times', async (_, headers, attempts) => {
    const { clock, guard, run } = createGuardPod({ retry, fetch: { hops: {} } })
    run(async () => new Response('', { status: 503, headers }))
    await clock.advance(1_000)
    expect(guard.snapshot().attempts).toBe(attempts)
  })
})
