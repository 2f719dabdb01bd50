/** Bugs known from other circuit breakers. */
import { describe, expect, it } from 'vitest'
import { distantBreakers } from '../../../test/distant-breakers.js'
import { usualOrLong } from '../../../test/long-run.js'
import { SpillwayError } from '../../core/errors.js'
import { createRandom } from '../../core/random.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { CircuitBreaker, CircuitBreakerOptions } from './api.js'
import { createCircuitBreaker } from './circuit-breaker.js'

const HOUR_MS = 3_600_000

function setup(options: Partial<CircuitBreakerOptions> = {}) {
  const clock = createVirtualClock()
  const distant = distantBreakers(clock)
  const create = () =>
    createCircuitBreaker({
      name: 'openai',
      store: distant.store,
      clock,
      consecutiveFailures: 5,
      openMs: '10s',
      probes: 2,
      successes: 2,
      ...options,
    })
  const pod = create()
  const enter = async (by: CircuitBreaker = pod) => {
    const answer = await clock.until(by.allow())
    if (!answer.allowed) throw answer.error
    return answer.permit
  }
  const isRefused = async (by: CircuitBreaker = pod) => !(await clock.until(by.allow())).allowed
  const record = async (...args: Parameters<CircuitBreaker['record']>) => {
    pod.record(...args)
    await clock.until(pod.flush())
  }
  const toHalfOpen = async () => {
    await clock.until(pod.trip())
    await clock.advance(10_000)
    expect(pod.state()).toBe('half-open')
  }
  return { clock, ...distant, distant, create, pod, enter, isRefused, record, toHalfOpen }
}

describe('probe that hangs', () => {
  it('a probe that hangs returns its permit when maxProbeMs has passed', async () => {
    const { clock, create, enter, isRefused, toHalfOpen } = setup({
      probes: 1,
      successes: 1,
      probeLeaseMs: '5s',
      maxProbeMs: '60s',
    })
    const other = create()
    await toHalfOpen()
    await enter()
    await clock.advance(59_900)
    expect(await isRefused(other)).toBe(true)
    await clock.advance(100)
    other.record('success', await enter(other))
    await clock.until(other.flush())
    expect(other.state()).toBe('closed')
  })

  it('the probe of a dead pod loses its permit after a lease', async () => {
    const { clock, pod, create, enter, isRefused, toHalfOpen } = setup({
      probes: 1,
      probeLeaseMs: '5s',
    })
    const other = create()
    await toHalfOpen()
    await enter()
    // A closed pod no longer renews the lease.
    await clock.until(pod.close())
    await clock.advance(4_000)
    expect(await isRefused(other)).toBe(true)
    await clock.advance(1_100)
    await expect(enter(other)).resolves.toMatchObject({ probe: true })
  })

  it('a probe that ends after maxProbeMs counts as nothing', async () => {
    const { clock, pod, enter, record, toHalfOpen } = setup({
      probes: 1,
      successes: 1,
      probeLeaseMs: '5s',
      maxProbeMs: '60s',
    })
    await toHalfOpen()
    const hung = await enter()
    await clock.advance(62_000)
    expect(pod.snapshot()).toMatchObject({ probes: 0 })
    await record('success', hung)
    expect(pod.state()).toBe('half-open')
  })

  it('a probe that ends long after its time changes nothing', async () => {
    const { clock, create, enter, record, toHalfOpen } = setup({ probes: 1, successes: 1 })
    const other = create()
    await toHalfOpen()
    const hung = await enter()
    await clock.advance(70_000)
    const fresh = await enter(other)
    await record('success', hung)
    expect(other.state()).toBe('half-open')
    await record('failure', hung)
    expect(other.state()).toBe('half-open')
    other.record('success', fresh)
    await clock.until(other.flush())
    expect(other.state()).toBe('closed')
  })
})

describe('probe without an outcome', () => {
  const noAnswer = Object.assign(new Error('given up'), { name: 'AbortError' })
  const tooMany = Object.assign(new Error('slow down'), { status: 429 })
  const full = new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'concurrency',
    scope: 'local',
    explain: () => 'full',
  })

  it.each([
    ['without a response', noAnswer],
    ['that was throttled', tooMany],
    ['that was refused by a later stage', full],
  ])('a probe %s frees its permit and neither closes nor opens the breaker', async (_, error) => {
    const { clock, pod, toHalfOpen } = setup({ probes: 1, successes: 1 })
    await toHalfOpen()
    for (let probe = 0; probe < 10; probe++) {
      await expect(clock.until(pod.run(() => Promise.reject(error)))).rejects.toBe(error)
      await clock.until(pod.flush())
      expect(pod.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
    }
    await clock.until(pod.run(() => 'fine'))
    await clock.until(pod.flush())
    expect(pod.state()).toBe('closed')
  })

  it.each([400, 401, 404, 409, 422, 425])(
    'a probe that is answered with %d succeeds: the downstream works',
    async (status) => {
      const { clock, pod, toHalfOpen } = setup({ probes: 1, successes: 2 })
      await toHalfOpen()
      const error = Object.assign(new Error('refused'), { status })
      await expect(clock.until(pod.run(() => Promise.reject(error)))).rejects.toBe(error)
      await clock.until(pod.run(() => new Response('', { status })))
      await clock.until(pod.flush())
      expect(pod.state()).toBe('closed')
    },
  )

  it('a probe that is answered with 404 counts as nothing if classify says so', async () => {
    const { clock, pod, toHalfOpen } = setup({
      probes: 1,
      successes: 1,
      classify: (end) => ('value' in end ? 'ignored' : undefined),
    })
    await toHalfOpen()
    await clock.until(pod.run(() => new Response('', { status: 404 })))
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
  })

  it('a probe whose caller left before the 404 arrived counts as nothing', async () => {
    const { clock, pod, toHalfOpen } = setup({ probes: 1, successes: 1 })
    await toHalfOpen()
    const abort = new AbortController()
    const { signal } = abort
    const answered = pod.run(
      async () => {
        abort.abort()
        throw Object.assign(new Error('not found'), { status: 404 })
      },
      { signal },
    )
    await expect(clock.until(answered)).rejects.toThrow('not found')
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
  })

  it('a probe aborted by its caller frees its permit and neither closes nor opens the breaker', async () => {
    const { clock, pod, toHalfOpen } = setup({ probes: 1, successes: 1 })
    await toHalfOpen()
    const abort = new AbortController()
    const { signal } = abort
    const cancelled = pod.run(() => sleep(clock, HOUR_MS, signal), { signal })
    await clock.advance(10)
    expect(pod.snapshot()).toMatchObject({ probes: 1 })
    abort.abort(new Error('left'))
    await expect(cancelled).rejects.toThrow('left')
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
    await expect(clock.until(pod.run(() => 'fine'))).resolves.toBe('fine')
  })

  it('a call that was already aborted requests no probe permit', async () => {
    const { clock, pod, trips, toHalfOpen } = setup()
    await toHalfOpen()
    const signal = AbortSignal.abort(new Error('left'))
    await expect(clock.until(pod.run(() => 'called', { signal }))).rejects.toThrow('left')
    expect(trips.probe).toBe(0)
  })
})

describe('late results', () => {
  it('a result from before the breaker opened neither opens nor closes a half-open breaker', async () => {
    const { pod, enter, record, toHalfOpen } = setup()
    const late = await Promise.all(Array.from({ length: 20 }, () => enter()))
    await toHalfOpen()
    for (const permit of late.slice(0, 10)) await record('failure', permit)
    expect(pod.state()).toBe('half-open')
    for (const permit of late.slice(10)) await record('success', permit)
    expect(pod.snapshot()).toMatchObject({ state: 'half-open', successes: 0 })
  })

  it('a result from before the breaker opened does not count after it has closed again', async () => {
    const { clock, pod, enter, record, toHalfOpen } = setup({ rampMs: 0 })
    const late = await Promise.all(Array.from({ length: 20 }, () => enter()))
    await toHalfOpen()
    for (let probe = 0; probe < 2; probe++) await record('success', await enter())
    expect(pod.state()).toBe('closed')
    for (const permit of late) await record('failure', permit)
    await clock.advance(2_000)
    expect(pod.snapshot()).toMatchObject({ state: 'closed', calls: 0, failures: 0 })
  })

  it('a probe of an earlier round neither opens nor closes the breaker in this round', async () => {
    const { clock, pod, enter, record, toHalfOpen } = setup({ probes: 3, successes: 1 })
    await toHalfOpen()
    const [first, second, third] = [await enter(), await enter(), await enter()]
    await record('failure', first)
    expect(pod.state()).toBe('open')
    await clock.advance(10_000)
    expect(pod.state()).toBe('half-open')
    await record('failure', second)
    expect(pod.state()).toBe('half-open')
    await record('success', third)
    expect(pod.state()).toBe('half-open')
  })

  it('results of a pod that missed the open period count nothing', async () => {
    const { clock, distant, pod, create, enter } = setup({ openMs: '300ms' })
    const other = create()
    const permits = await Promise.all(Array.from({ length: 20 }, () => enter(other)))
    distant.deaf = true
    await clock.until(pod.trip())
    await clock.until(pod.reset())
    expect(other.state()).toBe('closed')
    for (const permit of permits) other.record('failure', permit)
    await clock.until(other.flush())
    expect(pod.state()).toBe('closed')
    expect(other.snapshot()).toMatchObject({ state: 'closed', calls: 0, failures: 0 })
  })
})

describe('permits granted while closed', () => {
  it('an old permit that ends while the breaker is half-open neither frees nor takes a probe', async () => {
    const { pod, enter, isRefused, record, toHalfOpen } = setup({ probes: 2 })
    const early = await Promise.all(Array.from({ length: 10 }, () => enter()))
    await toHalfOpen()
    await enter()
    for (const permit of early.slice(0, 5)) await record('success', permit)
    expect(pod.snapshot()).toMatchObject({ probes: 1 })
    await enter()
    for (const permit of early.slice(5)) await record('failure', permit)
    expect(pod.snapshot()).toMatchObject({ probes: 2 })
    expect(await isRefused()).toBe(true)
  })
})

describe('reading the breaker state', () => {
  it('state() and snapshot() take no permit and no round trip', async () => {
    const { clock, pod, trips, enter, toHalfOpen } = setup({ probes: 1 })
    await toHalfOpen()
    const before = { ...trips }
    for (let attempt = 0; attempt < 1_000; attempt++) {
      pod.state()
      pod.snapshot()
    }
    await clock.settle()
    expect(trips).toEqual(before)
    await expect(enter()).resolves.toMatchObject({ probe: true })
  })
})

describe('refused calls', () => {
  it('calls refused by the breaker do not count towards the failure rate', async () => {
    const { clock, pod, enter, isRefused, record } = setup({
      failureRate: 0.5,
      minimumCalls: 10,
      rampMs: 0,
    })
    await clock.until(pod.trip())
    for (let call = 0; call < 1_000; call++) expect(await isRefused()).toBe(true)
    await clock.advance(10_000)
    const probes = [await enter(), await enter()]
    for (let call = 0; call < 1_000; call++) expect(await isRefused()).toBe(true)
    for (const probe of probes) await record('success', probe)
    expect(pod.snapshot()).toMatchObject({ state: 'closed', calls: 0 })
    await record('success')
    for (let call = 0; call < 4; call++) await record('failure')
    await record('success')
    for (let call = 0; call < 4; call++) {
      expect(pod.state()).toBe('closed')
      await record('failure')
    }
    expect(pod.snapshot()).toMatchObject({ state: 'open', calls: 10, failures: 8 })
  })

  it('calls refused by a later stage do not count towards the failure rate', async () => {
    const { clock, pod } = setup({ failureRate: 0.5, minimumCalls: 10 })
    // Its status, 503, would be a failure of the downstream.
    const error = new SpillwayError({
      code: 'QUEUE_FULL',
      stage: 'concurrency',
      scope: 'local',
      explain: () => 'full',
    })
    for (let call = 0; call < 100; call++) {
      await clock.until(pod.run(() => Promise.reject(error)).catch(() => {}))
    }
    await clock.advance(2_000)
    expect(pod.snapshot()).toMatchObject({ calls: 0 })
  })
})

describe('new pod', () => {
  it.each(['open', 'half-open', 'isolated', 'counting'] as const)(
    'a new pod leaves a breaker that is %s unchanged',
    async (state) => {
      const { clock, pod, create, enter, isRefused, record, toHalfOpen } = setup({ probes: 1 })
      if (state === 'open') await clock.until(pod.trip())
      if (state === 'half-open') {
        await toHalfOpen()
        await enter()
      }
      if (state === 'isolated') await clock.until(pod.isolate('1h'))
      if (state === 'counting') for (let call = 0; call < 4; call++) await record('failure')
      const before = pod.snapshot()
      const newcomer = create()
      expect(await isRefused(newcomer)).toBe(state !== 'counting')
      await clock.advance(1_100)
      for (const each of [pod, newcomer]) {
        const { state: now, probes, consecutiveFailures } = each.snapshot()
        expect({ now, probes, consecutiveFailures }).toEqual({
          now: before.state,
          probes: before.probes,
          consecutiveFailures: before.consecutiveFailures,
        })
      }
    },
  )

  it('a new pod starts no call before it knows that the breaker is open', async () => {
    const { clock, pod, create } = setup()
    await clock.until(pod.trip())
    const newcomer = create()
    const calls = Array.from({ length: 10 }, () => newcomer.run(() => 'called'))
    const ends = await clock.until(Promise.allSettled(calls))
    expect(ends.map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
  })
})

describe('long-running calls', () => {
  it('a running call blocks no other: calls, failures, trip and reset still work', async () => {
    const { clock, pod, create, enter, isRefused } = setup({ rampMs: 0 })
    const other = create()
    const long = pod.run(() => sleep(clock, HOUR_MS))
    for (const by of [pod, other]) {
      await clock.until(by.run(() => 'fine'))
      for (let call = 0; call < 5; call++) {
        await clock.until(by.run(() => Promise.reject(new Error('failed'))).catch(() => {}))
      }
      await clock.until(by.flush())
      expect(by.state()).toBe('open')
      await clock.until(by.reset())
      await clock.advance(10)
      expect(await isRefused(by)).toBe(false)
    }
    await clock.until(pod.trip())
    await clock.advance(10_000)
    const probing = pod.run(() => sleep(clock, HOUR_MS))
    await clock.advance(10)
    // One probe hangs and another one closes the breaker.
    for (let probe = 0; probe < 2; probe++) {
      other.record('success', await enter(other))
      await clock.until(other.flush())
    }
    expect(other.state()).toBe('closed')
    await clock.until(Promise.all([long, probing]))
  })
})

describe('failures reported at once while successes wait', () => {
  interface Load {
    errors: number
    pods: number
    callsPerMs: number
    forMs: number
    seed: number
  }
  /** Longer than the window of 30 seconds. */
  const full = { pods: 8, callsPerMs: 1, forMs: usualOrLong(35_000, 60_000), seed: 5 }
  const rate = { consecutiveFailures: 1_000_000, failureRate: 0.5 }
  /** Enough for fifty windows of 100 ms or of 100 calls. */
  const seconds = { ...full, forMs: usualOrLong(5_000, 60_000) }

  /** The highest failure rate seen, and the number of openings. */
  async function worstOf(load: Load, options: Partial<CircuitBreakerOptions>) {
    const { clock, store, create } = setup(options)
    let [worst, opened] = [0, 0]
    store.breakers.watch({
      onView: (_, __, view) => {
        opened += view.kind === 1 ? 1 : 0
      },
      onGap() {},
    })
    const pods = Array.from({ length: load.pods }, create)
    const random = createRandom(load.seed)
    for (let call = 0; call < load.forMs * load.callsPerMs; call++) {
      const by = pods[Math.floor(random() * load.pods)]!
      by.run(() => {
        if (random() < load.errors) throw new Error('failed')
      }).catch(() => {})
      if (call % load.callsPerMs === 0) await clock.advance(1)
      const { calls, failures } = by.snapshot()
      if (calls >= 10) worst = Math.max(worst, failures / calls)
    }
    return { worst, opened, calls: pods[0]!.snapshot().calls }
  }

  it('immediate failure reports do not make a failure rate of 5 % look like 50 % at 1,000 calls/s', async ({
    annotate,
  }) => {
    const { worst, opened, calls } = await worstOf({ errors: 0.05, ...full }, rate)
    await annotate(`the worst share of failures in the window was ${(worst * 100).toFixed(1)} %`)
    expect(opened).toBe(0)
    expect(calls).toBeGreaterThan(25_000)
    expect(worst).toBeLessThan(0.3)
  })

  it('immediate failure reports do not distort a window of a hundred calls in 100 ms', async () => {
    const window = { windowMs: 100, minimumCalls: 20 }
    const { opened, worst } = await worstOf({ errors: 0.05, ...seconds }, { ...rate, ...window })
    expect(opened).toBe(0)
    // It reaches 0.2 if successes wait.
    expect(worst).toBeLessThan(0.2)
  })

  it('immediate failure reports do not distort a count window of 100 calls', async () => {
    const window = { windowCalls: 100, minimumCalls: 20 }
    const { opened, worst } = await worstOf({ errors: 0.05, ...seconds }, { ...rate, ...window })
    expect(opened).toBe(0)
    // It reaches 0.36 if successes wait.
    expect(worst).toBeLessThan(0.3)
  })

  it.each([1, 2, 3, 4, 5])('a new fleet with 5 % failures never trips: %i', async (seed) => {
    // Each pod makes one or two calls before its first batch of successes is due.
    const beginning = { errors: 0.05, pods: 100, callsPerMs: 2, forMs: 200, seed }
    const { opened, worst } = await worstOf(beginning, rate)
    expect(opened).toBe(0)
    expect(worst).toBeLessThan(0.4)
  })

  it('a failure rate of 60 % opens the breaker', async () => {
    const { opened } = await worstOf({ ...full, errors: 0.6, forMs: 5_000 }, rate)
    expect(opened).toBeGreaterThan(0)
  })
})
