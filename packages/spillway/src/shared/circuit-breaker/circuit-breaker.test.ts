import { describe, expect, it } from 'vitest'
import { distantBreakers } from '../../../test/distant-breakers.js'
import { sleep } from '../../core/time/sleep.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { PodStore } from '../../store/port.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { CircuitBreaker, CircuitBreakerOptions } from './api.js'
import { createCircuitBreaker } from './circuit-breaker.js'

const fail = () => Promise.reject(new Error('failed'))

function setup(options: Partial<CircuitBreakerOptions> = {}) {
  const clock = createVirtualClock()
  const near = memoryStore({ clock })
  const distant = distantBreakers(clock, near)
  const create = (own: Partial<CircuitBreakerOptions> = {}) =>
    createCircuitBreaker({ name: 'openai', store: distant.store, clock, ...options, ...own })
  /** Creates a pod and waits until it knows the breaker's state. */
  const join = async (own?: Partial<CircuitBreakerOptions>) => {
    const pod = create(own)
    await clock.until(pod.allow())
    return pod
  }
  const record = async (pod: CircuitBreaker, ...args: Parameters<CircuitBreaker['record']>) => {
    pod.record(...args)
    await clock.until(pod.flush())
  }
  return { clock, near, distant, create, join, record }
}

describe('closed breaker', () => {
  it('a call through a closed breaker waits for nothing', async () => {
    const { clock, join } = setup()
    const pod = await join()
    const startMs = clock.now()
    for (let call = 0; call < 1_000; call++) await pod.run(() => call)
    expect(clock.now()).toBe(startMs)
  })

  it('successes of 100 ms share one round trip once there are enough of them', async () => {
    const { clock, distant, join } = setup()
    const pod = await join()
    for (let call = 0; call < 100; call++) pod.record('success')
    await clock.until(pod.flush())
    const before = distant.trips.report
    for (let ms = 0; ms < 1_000; ms++) {
      for (let call = 0; call < 10; call++) await pod.run(() => 'fine')
      await clock.advance(1)
    }
    await clock.until(pod.flush())
    expect(distant.trips.report - before).toBeLessThanOrEqual(11)
    expect(pod.snapshot()).toMatchObject({ calls: 10_100, failures: 0 })
  })

  it('a failure is reported at once, in order and with the successes before it', async () => {
    const { clock, distant, join } = setup()
    const pod = await join()
    for (let call = 0; call < 100; call++) pod.record('success')
    await clock.until(pod.flush())
    distant.reports.length = 0
    for (let call = 0; call < 19; call++) pod.record('success')
    await clock.advance(50)
    expect(distant.reports).toHaveLength(0)
    pod.record('failure')
    expect(distant.reports.map(({ outcomes }) => outcomes)).toEqual([
      [
        [0, 19],
        [1, 1],
      ],
    ])
    // Recorded while the report is in flight, so it is sent with the next one.
    pod.record('success')
    pod.record('slow')
    pod.record('success')
    pod.record('failure')
    pod.record('failure')
    await clock.until(pod.flush())
    expect(distant.reports.slice(1).map(({ outcomes }) => outcomes)).toEqual([
      [
        [0, 1],
        [2, 1],
        [0, 1],
        [1, 2],
      ],
    ])
    expect(pod.snapshot()).toMatchObject({ calls: 125, failures: 3, slow: 1 })
  })
})

describe('open breaker', () => {
  it('an open breaker refuses from memory without a round trip or delay', async () => {
    const { clock, distant, join } = setup()
    const pod = await join()
    await clock.until(pod.trip())
    const [startMs, before] = [clock.now(), { ...distant.trips }]
    for (let call = 0; call < 1_000; call++) {
      await expect(pod.run(() => 'called')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    }
    expect(clock.now()).toBe(startMs)
    expect(distant.trips).toEqual(before)
  })
})

describe('half-open breaker', () => {
  const halfOpen = async (options: Partial<CircuitBreakerOptions> = {}) => {
    const all = setup({ openMs: '10s', probes: 2, successes: 2, ...options })
    const pod = await all.join()
    await all.clock.until(pod.trip())
    await all.clock.advance(10_000)
    return { ...all, pod }
  }

  it('probe requests share one round trip, and none is sent for a moment after a refusal', async () => {
    const { clock, distant, pod } = await halfOpen()
    const ask = async (times: number) => {
      const answers = Array.from({ length: times }, () => pod.allow())
      return (await clock.until(Promise.all(answers))).filter(({ allowed }) => allowed).length
    }
    expect(await ask(100)).toBe(2)
    expect(distant.trips.probe).toBeLessThanOrEqual(2)
    const before = distant.trips.probe
    for (let time = 0; time < 10; time++) expect(await ask(100)).toBe(0)
    expect(distant.trips.probe).toBe(before)
    await clock.advance(20)
    expect(await ask(100)).toBe(0)
    expect(distant.trips.probe).toBe(before + 1)
  })

  it('a probe permit that this pod returns can be taken again at once', async () => {
    const { clock, pod } = await halfOpen({ probes: 1, successes: 10 })
    for (let probe = 0; probe < 5; probe++) {
      await clock.until(pod.run(() => 'fine'))
      await clock.until(pod.run(() => sleep(clock, 10)))
    }
    await clock.until(pod.flush())
    expect(pod.state()).toBe('closed')
  })

  it('half-open breaker refuses while the store does not answer, and no call hangs', async () => {
    const { clock, distant, pod } = await halfOpen()
    distant.down = true
    await expect(clock.until(pod.run(() => 'called'))).rejects.toMatchObject({
      code: 'CIRCUIT_OPEN',
    })
    distant.down = false
    await expect(clock.until(pod.run(() => 'called'))).resolves.toBe('called')
  })

  it('a probe whose reply was lost holds its permit no longer than a lease', async () => {
    const { clock, distant, pod } = await halfOpen({ probes: 1, probeLeaseMs: '5s' })
    distant.faults.probe.push('lose-reply')
    const ask = async () => (await clock.until(pod.allow())).allowed
    expect(await ask()).toBe(false)
    expect(await ask()).toBe(false)
    await clock.advance(5_000)
    expect(await ask()).toBe(true)
  })

  it('a probe request is allowed as an ordinary call if the breaker has closed meanwhile', async () => {
    const { clock, near, distant, pod } = await halfOpen()
    distant.deaf = true
    await createCircuitBreaker({ name: 'openai', store: near, clock }).reset()
    expect(pod.state()).toBe('half-open')
    const answer = await clock.until(pod.allow())
    expect(answer).toMatchObject({ allowed: true, permit: { probe: false } })
    expect(pod.state()).toBe('closed')
  })

  it('pod sends one probe request although the store has lost its state and its clock is behind', async () => {
    const { clock, distant, pod } = await halfOpen()
    const behind = createVirtualClock()
    await behind.advance(clock.wallMs() - behind.wallMs() - 3_000)
    const successor = memoryStore({ clock: behind }).breakers
    let trips = 0
    distant.store.breakers.probe = async (request) => {
      if (++trips > 1_000) throw new Error('it does not stop asking')
      return successor.probe(request)
    }
    expect(await clock.until(pod.allow())).toMatchObject({ allowed: true })
    expect(trips).toBe(1)
    expect(pod.state()).toBe('closed')
  })

  it('a probe request is refused if the breaker has opened meanwhile', async () => {
    const { clock, near, distant, pod } = await halfOpen()
    distant.deaf = true
    await createCircuitBreaker({ name: 'openai', store: near, clock, openMs: '1h' }).trip()
    const answer = await clock.until(pod.allow())
    expect(answer).toMatchObject({ allowed: false, error: { details: { state: 'open' } } })
  })
})

describe('breaker ramp after closing', () => {
  const justClosed = async () => {
    const all = setup({ openMs: '10s', probes: 2, successes: 1, rampMs: '60s' })
    const pod = await all.join()
    await all.clock.until(pod.trip())
    await all.clock.advance(10_000)
    await all.clock.until(pod.run(() => 'fine'))
    await all.clock.until(pod.flush())
    expect(pod.state()).toBe('closed')
    return { ...all, pod }
  }
  const enterAll = async (pod: CircuitBreaker) => {
    let entered = 0
    while ((await pod.allow()).allowed) entered++
    return entered
  }

  it('concurrent calls double six times after closing and are then unlimited', async () => {
    const { clock, pod } = await justClosed()
    let total = await enterAll(pod)
    const seen = [total]
    for (let tenth = 1; tenth <= 5; tenth++) {
      await clock.advance(10_000)
      total += await enterAll(pod)
      seen.push(total)
    }
    expect(seen).toEqual([2, 4, 8, 16, 32, 64])
    await clock.advance(10_000)
    for (let call = 0; call < 1_000; call++) expect((await pod.allow()).allowed).toBe(true)
  })

  it('outcomes recorded without a permit do not free ramp capacity', async () => {
    const { pod } = await justClosed()
    expect(await enterAll(pod)).toBe(2)
    for (let call = 0; call < 10; call++) pod.record('success')
    expect(await enterAll(pod)).toBe(0)
  })
})

describe('breaker reports', () => {
  it('a report whose reply was lost is sent again and counts once', async () => {
    const { clock, distant, join, record } = setup({ consecutiveFailures: 5 })
    const pod = await join()
    for (let call = 0; call < 4; call++) {
      distant.faults.report.push('lose-reply', 'lose-reply')
      await record(pod, 'failure')
    }
    expect(distant.trips.report).toBe(12)
    const numbers = new Set(distant.reports.map(({ sequence }) => sequence))
    expect(numbers.size).toBe(4)
    await clock.advance(1_100)
    expect(pod.snapshot()).toMatchObject({ state: 'closed', calls: 4, consecutiveFailures: 4 })
  })

  it('a report that did not arrive is sent again and counts', async () => {
    const { distant, join, record } = setup({ consecutiveFailures: 3 })
    const pod = await join()
    distant.faults.report.push('lose-request', 'lose-reply', 'lose-request')
    for (let call = 0; call < 3; call++) await record(pod, 'failure')
    expect(pod.snapshot()).toMatchObject({ state: 'open', calls: 3, failures: 3 })
  })

  it('the outcome of a probe is sent again as well and counts once', async () => {
    const { clock, distant, join, record } = setup({ openMs: '10s', probes: 1, successes: 2 })
    const pod = await join()
    await clock.until(pod.trip())
    await clock.advance(10_000)
    const answer = await clock.until(pod.allow())
    if (!answer.allowed) throw answer.error
    distant.faults.report.push('lose-reply')
    await record(pod, 'success', answer.permit)
    expect(pod.snapshot()).toMatchObject({ state: 'half-open', successes: 1, probes: 0 })
  })

  it('a report older than the window is dropped', async () => {
    const { clock, distant, join } = setup({ windowMs: '1s', consecutiveFailures: 3 })
    const pod = await join()
    distant.down = true
    pod.record('failure')
    pod.record('failure')
    await clock.advance(5_000)
    distant.down = false
    await clock.advance(2_000)
    expect(pod.snapshot()).toMatchObject({ calls: 0 })
    pod.record('failure')
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ state: 'closed', calls: 1 })
  })

  it('outcomes of an outage are reported when the store is back', async () => {
    const { clock, distant, join } = setup({ consecutiveFailures: 1_000 })
    const pod = await join()
    distant.down = true
    for (let call = 0; call < 50; call++) {
      pod.record('success')
      pod.record('failure')
      await clock.advance(10)
    }
    distant.down = false
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ calls: 100, failures: 50 })
  })

  it('a new pod reports only after it knows the current generation', async () => {
    const { clock, create, join } = setup({ consecutiveFailures: 5 })
    const pod = await join()
    await clock.until(pod.trip())
    await clock.until(pod.reset())
    const newcomer = create()
    for (let call = 0; call < 5; call++) newcomer.record('failure')
    await clock.until(newcomer.flush())
    expect(newcomer.state()).toBe('open')
  })
})

describe('lost breaker messages', () => {
  it.each(['trip', 'reset', 'isolate'] as const)(
    'a pod learns of a %s within a second although the push message was lost',
    async (what) => {
      const { clock, distant, join } = setup()
      const [one, other] = [await join(), await join()]
      if (what === 'reset') await clock.until(one.trip())
      await clock.advance(10)
      distant.deaf = true
      await clock.until(what === 'isolate' ? one.isolate('1h') : one[what]())
      const before = what === 'reset' ? 'open' : 'closed'
      expect(other.state()).toBe(before)
      await clock.advance(1_010)
      expect(other.state()).toBe(one.state())
      expect(other.state()).not.toBe(before)
    },
  )

  it('a pod that reports learns a missed transition from the reply', async () => {
    const { clock, distant, join, record } = setup()
    const [one, other] = [await join(), await join()]
    distant.deaf = true
    await clock.until(one.trip())
    await record(other, 'failure')
    expect(other.state()).toBe('open')
  })
})

describe('breaker while the store is unreachable', () => {
  it('an unreachable store does not make a closed breaker refuse', async () => {
    const { clock, distant, create } = setup()
    distant.down = true
    const pod = create()
    await expect(clock.until(pod.run(() => 'called'))).resolves.toBe('called')
    for (let call = 0; call < 100; call++) await pod.run(fail).catch(() => {})
    expect(pod.state()).toBe('closed')
  })

  it('an unreachable store leaves the known state unchanged', async () => {
    const { clock, distant, join } = setup({ openMs: '10s' })
    const pod = await join()
    await clock.until(pod.trip())
    distant.down = true
    await clock.advance(5_000)
    await expect(pod.run(() => 'called')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    await clock.advance(5_000)
    expect(pod.state()).toBe('half-open')
  })

  it('a manual command fails with STORE_UNAVAILABLE', async () => {
    const { clock, distant, join } = setup()
    const pod = await join()
    distant.down = true
    await expect(clock.until(pod.trip())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})

describe('breaker close()', () => {
  it('close() reports the remaining outcomes and leaves no timer', async () => {
    const { clock, distant, join } = setup({ consecutiveFailures: 3, quorum: 2 })
    const [one, other] = [await join(), await join()]
    await clock.until(one.trip())
    await clock.until(one.reset())
    for (let call = 0; call < 3; call++) one.record('failure')
    one.record('success', { lane: 'other' })
    await clock.until(one.close())
    await clock.until(other.close())
    expect(distant.reports.map(({ lane }) => lane).sort()).toEqual(['default', 'default', 'other'])
    const { fired } = clock
    await clock.advance(3_600_000)
    expect(clock.fired).toBe(fired)
  })

  it('close() does not wait for an unreachable store longer than one attempt', async () => {
    const { clock, distant, join } = setup()
    const pod = await join()
    distant.down = true
    pod.record('failure')
    await clock.advance(50)
    pod.record('failure')
    const startMs = clock.now()
    await clock.until(pod.close())
    expect(clock.now() - startMs).toBeLessThan(20)
    const { fired } = clock
    await clock.advance(3_600_000)
    expect(clock.fired).toBe(fired)
  })

  it('the outcome of a call that ends after close() is still reported', async () => {
    const { clock, join } = setup({ openMs: '10s', probes: 1, successes: 1 })
    const [pod, other] = [await join(), await join()]
    await clock.until(pod.trip())
    await clock.advance(10_000)
    const call = pod.run(() => sleep(clock, 1_000))
    await clock.advance(100)
    await clock.until(pod.close())
    await clock.until(call)
    await clock.advance(10)
    expect(other.state()).toBe('closed')
  })
})

describe('breaker quorum', () => {
  it('with a quorum, a pod that fails alone isolates itself until it recovers', async () => {
    const { clock, join } = setup({
      quorum: 2,
      consecutiveFailures: 5,
      openMs: '10s',
      successes: 1,
    })
    const [sick, ...others] = [await join(), await join(), await join()]
    for (let call = 0; call < 5; call++) await sick!.run(fail).catch(() => {})
    await clock.until(sick!.flush())
    expect(sick!.snapshot()).toMatchObject({ state: 'closed', selfIsolated: true })
    await expect(sick!.run(() => 'called')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    for (const pod of others) expect(await pod.run(() => 'fine')).toBe('fine')
    await clock.advance(10_000)
    await clock.until(sick!.run(() => 'fine'))
    expect(sick!.snapshot()).toMatchObject({ selfIsolated: false })
  })

  it('an isolated pod recovers although its calls take longer than a lease', async () => {
    const { clock, join } = setup({
      quorum: 2,
      consecutiveFailures: 5,
      openMs: '10s',
      probeLeaseMs: '1s',
      successes: 2,
    })
    const [sick] = [await join(), await join(), await join()]
    for (let call = 0; call < 5; call++) await sick!.run(fail).catch(() => {})
    await clock.until(sick!.flush())
    await clock.advance(10_000)
    for (let call = 0; call < 2; call++) {
      expect(sick!.snapshot()).toMatchObject({ selfIsolated: true })
      await clock.until(sick!.run(() => sleep(clock, 5_000)))
    }
    expect(sick!.snapshot()).toMatchObject({ selfIsolated: false })
  })

  it('a pod that closes during a heartbeat leaves the fleet', async () => {
    const { clock, near, distant, create } = setup({ quorum: 2 })
    const pods: PodStore = {
      ...near.pods,
      async beat(request) {
        await sleep(clock, 50)
        return near.pods.beat(request)
      },
    }
    const pod = create({ store: { ...distant.store, pods } })
    await clock.until(pod.close())
    await clock.advance(1_000)
    expect(near.pods.list({ group: 'openai' })).toEqual([])
  })

  it('quorum is at most the fleet size, so one pod alone can trip the breaker', async () => {
    const { clock, join } = setup({ quorum: 3, consecutiveFailures: 5 })
    const [one, other] = [await join(), await join()]
    await clock.until(other.close())
    for (let call = 0; call < 5; call++) await one.run(fail).catch(() => {})
    await clock.until(one.flush())
    expect(one.state()).toBe('open')
  })

  it('quorum ignores pods that have died', async () => {
    const { clock, near, join } = setup({ quorum: 2, consecutiveFailures: 5 })
    const one = await join()
    near.pods.beat({ group: 'openai', pod: 'dead', lifeUs: 5_000_000, snapshot: '' })
    for (let call = 0; call < 5; call++) await one.run(fail).catch(() => {})
    await clock.until(one.flush())
    expect(one.snapshot()).toMatchObject({ state: 'closed', selfIsolated: true })
    await clock.until(one.reset())
    await clock.advance(6_000)
    // A decision of the fleet resets the pod's own breaker.
    await clock.until(one.isolate('1s'))
    await clock.until(one.release())
    for (let call = 0; call < 5; call++) await one.run(fail).catch(() => {})
    await clock.until(one.flush())
    expect(one.state()).toBe('open')
  })
})

describe('breaker run()', () => {
  it('run() passes values and errors through unchanged', async () => {
    const { clock, join } = setup()
    const pod = await join()
    const error = new Error('mine')
    await expect(pod.run(() => 1)).resolves.toBe(1)
    await expect(pod.run(async () => 2)).resolves.toBe(2)
    await expect(pod.run(() => Promise.reject(error))).rejects.toBe(error)
    const throwing = pod.run(() => {
      throw error
    })
    await expect(throwing).rejects.toBe(error)
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ calls: 4, failures: 2 })
  })

  it('classify decides the outcome of a call', async () => {
    const { clock, join } = setup({
      classify: (end) => ('value' in end && end.value === 'bad' ? 'failure' : undefined),
    })
    const pod = await join()
    await pod.run(() => 'bad')
    await pod.run(() => 'good')
    await clock.until(pod.flush())
    expect(pod.snapshot()).toMatchObject({ calls: 2, failures: 1 })
  })
})

describe('circuit breaker options', () => {
  const create = (options: object) => () => createCircuitBreaker({ name: 'x', ...options })

  it.each([
    [{ slowRate: 0.5 }, 'circuitBreaker.slowRate: needs slowMs'],
    [
      { failureRate: 0 },
      'circuitBreaker.failureRate: must be a number above 0 and at most 1, got 0',
    ],
    [
      { failureRate: 1.1 },
      'circuitBreaker.failureRate: must be a number above 0 and at most 1, got 1.1',
    ],
    [{ windowMs: 1_000, windowCalls: 10 }, 'circuitBreaker.windowCalls: must not come together'],
    [{ windowMs: '6m' }, 'circuitBreaker.windowMs: must be'],
    [{ windowCalls: 10, minimumCalls: 11 }, 'circuitBreaker.minimumCalls: must not be more'],
    [{ openMs: '10s', maxOpenMs: '5s' }, 'circuitBreaker.maxOpenMs: must be at least'],
    [{ openFactor: 0.5 }, 'circuitBreaker.openFactor: must be'],
    [{ probes: 0 }, 'circuitBreaker.probes: must be'],
    [{ shadow: 'yes' }, 'circuitBreaker.shadow: must be true or false'],
    [{ probe: 1 }, 'did you mean'],
  ])('circuit breaker options %j are rejected', (options, message) => {
    expect(create(options)).toThrow(message)
  })

  it('the default breaker opens for 30 s when half of at least ten calls in 30 s fail', async () => {
    const { clock, join, record } = setup()
    const pod = await join()
    for (let call = 0; call < 5; call++) await record(pod, 'success')
    for (let call = 0; call < 4; call++) await record(pod, 'failure')
    expect(pod.state()).toBe('closed')
    await record(pod, 'failure')
    expect(pod.state()).toBe('open')
    await clock.advance(29_990)
    expect(pod.state()).toBe('open')
    await clock.advance(20)
    expect(pod.state()).toBe('half-open')
  })

  it('setting one trip condition turns the default conditions off', async () => {
    const { join, record } = setup({ consecutiveFailures: 100 })
    const pod = await join()
    for (let call = 0; call < 99; call++) await record(pod, 'failure')
    expect(pod.state()).toBe('closed')
  })
})
