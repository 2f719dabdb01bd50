import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createDeadline, currentDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createPodMetrics } from '../pod-metrics/pod-metrics.js'
import { createTimeout } from '../timeout/timeout.js'
import { type BulkheadOptions, createBulkhead, createBulkheadRegistry } from './bulkhead.js'

function setup(options: Partial<BulkheadOptions> = {}) {
  const clock = createVirtualClock()
  const bulkhead = createBulkhead({ name: 'openai', limit: 2, clock, ...options })
  /** Runs a call that takes `ms`. */
  const work = (ms: number, value = 'done') =>
    bulkhead.run(() => sleep(clock, ms).then(() => value))
  return { clock, bulkhead, work }
}

describe('bulkhead', () => {
  it('bulkhead runs `limit` calls at once and refuses the next one with its numbers', async () => {
    const { clock, bulkhead, work } = setup()
    const running = [work(100), work(100)]
    expect(bulkhead.snapshot()).toEqual({
      name: 'openai',
      limit: 2,
      active: 2,
      waiting: 0,
      available: 0,
    })
    await expect(work(100)).rejects.toMatchObject({
      code: 'QUEUE_FULL',
      stage: 'concurrency',
      scope: 'local',
      status: 503,
      details: { active: 2, limit: 2, waiting: 0, size: 0 },
      message: 'openai: 2 of 2 slots in use, 0 of 0 queued',
    })
    await clock.until(Promise.all(running))
    expect(bulkhead.available).toBe(2)
  })

  it('bulkhead starts queued calls in order as slots become free', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 5 } })
    const started: string[] = []
    const call = (name: string) =>
      bulkhead.run(() => {
        started.push(`${name}@${clock.now()}`)
        return sleep(clock, 10)
      })
    const all = Promise.all([call('a'), call('b'), call('c')])
    expect(bulkhead.waiting).toBe(2)
    await clock.until(all)
    expect(started).toEqual(['a@0', 'b@10', 'c@20'])
    await expect(clock.until(work(1))).resolves.toBe('done')
  })

  it('queue timeout covers the wait and not the call that follows', async () => {
    const { clock, work } = setup({ limit: 1, queue: { size: 5, timeoutMs: '5s' } })
    void work(4_999)
    const long = work(30_000, 'long')
    const refused = work(1).catch((error) => ({ error, atMs: clock.now() }))
    await expect(clock.until(long)).resolves.toBe('long')
    await expect(refused).resolves.toMatchObject({
      error: { code: 'QUEUE_TIMEOUT', status: 504 },
      atMs: 5_000,
    })
  })

  it('only the call that timed out or aborted leaves the queue', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 5, timeoutMs: 100 } })
    void work(150)
    const order: string[] = []
    const note = (name: string) => bulkhead.run(() => order.push(name))
    const impatient = note('impatient').catch((error) => error.code)
    await clock.advance(60)
    const abort = new AbortController()
    const aborted = bulkhead
      .run(() => order.push('aborted'), { signal: abort.signal })
      .catch((error) => error)
    const patient = note('patient')
    await clock.advance(40)
    await expect(impatient).resolves.toBe('QUEUE_TIMEOUT')
    const reason = new Error('caller left')
    abort.abort(reason)
    await expect(aborted).resolves.toBe(reason)
    await clock.until(patient)
    expect(order).toEqual(['patient'])
  })

  it('bulkhead never starts a call whose signal is already aborted', async () => {
    const { clock, bulkhead } = setup({ limit: 1, queue: { size: 1 } })
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(bulkhead.run(() => 1, { signal })).rejects.toThrow('gone')

    // The queued call aborts after the slot was released and before it starts.
    const abort = new AbortController()
    const first = sleep(clock, 10)
    void bulkhead.run(() => first)
    const second = bulkhead.run(() => 'ran', { signal: abort.signal }).catch((error) => error.name)
    void first.then(() => abort.abort())
    await clock.advance(10)
    await expect(second).resolves.toBe('AbortError')
    expect(bulkhead.active).toBe(0)
  })

  it('bulkhead leaves no listener on a signal that outlives its calls', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 1 } })
    const abort = new AbortController()
    const { signal } = abort
    const counts = { added: 0, removed: 0 }
    const add = signal.addEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      counts.added++
      add(...args)
    }
    const remove = signal.removeEventListener.bind(signal)
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      counts.removed++
      remove(...args)
    }
    void work(10)
    await clock.until(bulkhead.run(() => 1, { signal }))
    expect(counts).toEqual({ added: 1, removed: 1 })
  })

  it('a queued call waits at most until the deadline of its request', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 1, timeoutMs: 5_000 } })
    void work(1_000)
    const late = runWithDeadline(createDeadline(200, clock), () => bulkhead.run(() => 1))
    const outcome = late.catch((error) => ({ code: error.code, atMs: clock.now() }))
    await clock.advance(1_000)
    await expect(outcome).resolves.toEqual({ code: 'DEADLINE_EXCEEDED', atMs: 200 })
    const tooLate = runWithDeadline(createDeadline(0, clock), () => bulkhead.run(() => 1))
    await expect(tooLate).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })

  it('a queued call runs in the async context of its own caller', async () => {
    const { clock, bulkhead } = setup({ limit: 1, queue: { size: 1 } })
    const seen: (number | undefined)[] = []
    const request = (timeoutMs: number) =>
      runWithDeadline(createDeadline(timeoutMs, clock), () =>
        bulkhead.run(() => {
          seen.push(currentDeadline()?.atMs)
          return sleep(clock, 10)
        }),
      )
    await clock.until(Promise.all([request(1_000), request(2_000)]))
    expect(seen).toEqual([1_000, 2_000])
  })

  it('bulkhead releases the slot however the function ends', async () => {
    const { bulkhead } = setup({ limit: 1 })
    const boom = new Error('boom')
    const throwing = () => {
      throw boom
    }
    await expect(bulkhead.run(throwing)).rejects.toBe(boom)
    await expect(bulkhead.run(() => Promise.reject(boom))).rejects.toBe(boom)
    await expect(bulkhead.run(() => 'at once')).resolves.toBe('at once')
    // biome-ignore lint/suspicious/noThenProperty: a foreign thenable
    const thenable = { then: (resolve: (value: string) => void) => resolve('foreign') }
    await expect(bulkhead.run(() => thenable as PromiseLike<string>)).resolves.toBe('foreign')
    expect(bulkhead.active).toBe(0)
  })

  it('ten thousand queued calls can finish at once', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 10_000 } })
    void work(10)
    const all = Promise.all(Array.from({ length: 10_000 }, (_, i) => bulkhead.run(() => i)))
    await expect(clock.until(all)).resolves.toHaveLength(10_000)
    expect(bulkhead.active).toBe(0)
  })

  it('bulkhead emits an event for every refusal', async () => {
    const { clock, work } = setup({ limit: 1 })
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    void work(1)
    await expect(work(1)).rejects.toThrow()
    stop()
    await clock.drain()
    expect(events).toEqual([
      {
        type: 'bulkhead.refused',
        name: 'openai',
        code: 'QUEUE_FULL',
        active: 1,
        waiting: 0,
        limit: 1,
      },
    ])
  })

  it('bulkhead records queue waits in the pod metrics', async () => {
    const clock = createVirtualClock()
    const metrics = createPodMetrics({ clock })
    const bulkhead = createBulkhead({ limit: 1, queue: { size: 1 }, metrics, clock })
    const call = () => bulkhead.run(() => sleep(clock, 100))
    await clock.until(Promise.all([call(), call()]))
    expect(metrics.queueWaitMs()).toBe(50)
  })

  it('metrics that throw do not cost the bulkhead a slot', async () => {
    const metrics = {
      recordQueueWait: () => {
        throw new Error('metrics are down')
      },
    }
    const bulkhead = createBulkhead({ limit: 1, metrics })
    await expect(bulkhead.run(() => 'ok')).resolves.toBe('ok')
    expect(bulkhead.active).toBe(0)
  })

  it('createBulkhead names the invalid option', () => {
    expect(() => createBulkhead({ limit: 0 })).toThrow('bulkhead.limit: must be a positive integer')
    expect(() => createBulkhead({ limit: 1, queue: { size: 1.5 } })).toThrow('bulkhead.queue.size')
    expect(() => createBulkhead({ limit: 1, graceMs: -1 })).toThrow('bulkhead.graceMs')
  })
})

describe('bulkhead slot of a call that timed out', () => {
  it('a timed-out call keeps its slot until its work has ended', async () => {
    const { clock, bulkhead } = setup({ limit: 1 })
    const timeout = createTimeout({ callMs: 10, clock })
    let running = 0
    let most = 0
    const deafWork = async () => {
      running++
      most = Math.max(most, running)
      await sleep(clock, 1_000)
      running--
    }
    const call = () => bulkhead.run(() => timeout.run(deafWork))
    const first = call().catch((error) => error.code)
    await clock.advance(10)
    await expect(first).resolves.toBe('CALL_TIMEOUT')
    expect(bulkhead.active).toBe(1)
    for (let i = 0; i < 5; i++) {
      await expect(call()).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    }
    await clock.advance(990)
    expect(bulkhead.active).toBe(0)
    expect(most).toBe(1)
  })

  it('an aborted call keeps its slot while its work runs inside nested async functions', async () => {
    const { clock, bulkhead } = setup({ limit: 1 })
    const timeout = createTimeout({ callMs: 10_000, clock })
    const abort = new AbortController()
    const call = bulkhead.run(async () => {
      await timeout.run(() => sleep(clock, 500), { signal: abort.signal })
    })
    abort.abort(new Error('hung up'))
    await expect(call).rejects.toThrow('hung up')
    expect(bulkhead.active).toBe(1)
    await clock.advance(500)
    expect(bulkhead.active).toBe(0)
  })

  it('a call keeps its slot when the timeout error is wrapped in another error', async () => {
    const { clock, bulkhead } = setup({ limit: 1 })
    const timeout = createTimeout({ callMs: 10, clock })
    const call = bulkhead.run(() =>
      timeout
        .run(() => sleep(clock, 500))
        .catch((cause) => Promise.reject(new Error('no quote', { cause }))),
    )
    await expect(clock.until(call)).rejects.toThrow('no quote')
    expect(bulkhead.active).toBe(1)
    await clock.advance(490)
    expect(bulkhead.active).toBe(0)
  })

  it('a call that never ends loses its slot after graceMs and an event reports it', async () => {
    const { clock, bulkhead } = setup({ limit: 1, graceMs: '2s', queue: { size: 1 } })
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const timeout = createTimeout({ callMs: 10, clock })
    const hanging = bulkhead.run(() => timeout.run(() => new Promise(() => {})))
    const waiting = bulkhead.run(() => clock.now())
    await expect(clock.until(hanging)).rejects.toMatchObject({ code: 'CALL_TIMEOUT' })
    await expect(clock.until(waiting)).resolves.toBe(2_010)
    stop()
    expect(events).toContainEqual({ type: 'bulkhead.overdue', name: 'openai', graceMs: 2_000 })
    expect(bulkhead.active).toBe(0)
  })
})

describe('bulkhead close()', () => {
  it('close() refuses queued and new calls, waits for running ones and leaves no timer', async () => {
    const { clock, bulkhead, work } = setup({ limit: 1, queue: { size: 3 } })
    const running = work(100)
    const waiting = work(1)
    let closed = false
    const closing = bulkhead.close().then(() => {
      closed = true
    })
    await expect(waiting).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
      message: 'openai is closed',
    })
    await expect(work(1)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await clock.advance(99)
    expect(closed).toBe(false)
    await clock.until(running)
    await closing
    expect(clock.pending).toBe(0)
  })

  it('close() does not wait for work that outlives its call', async () => {
    const { clock, bulkhead } = setup({ limit: 2 })
    const hang = (callMs: number) => {
      const timeout = createTimeout({ callMs, clock })
      return bulkhead.run(() => timeout.run(() => new Promise(() => {}))).catch(() => {})
    }
    void hang(10)
    void hang(20)
    await clock.advance(10)
    await clock.until(bulkhead.close())
    expect(clock.now()).toBe(20)
    expect(clock.pending).toBe(0)
  })
})

describe('bulkhead registry', () => {
  it('registry keeps one bulkhead per downstream, so one cannot starve another', async () => {
    const clock = createVirtualClock()
    const bulkheads = createBulkheadRegistry({ limit: 1, clock })
    const slow = bulkheads.get('payments').run(() => sleep(clock, 100))
    await expect(bulkheads.get('users', { limit: 5 }).run(() => 'ok')).resolves.toBe('ok')
    expect(bulkheads.get('payments')).toBe(bulkheads.get('payments'))
    expect(bulkheads.snapshot()).toEqual([
      { name: 'payments', limit: 1, active: 1, waiting: 0, available: 0 },
      { name: 'users', limit: 5, active: 0, waiting: 0, available: 5 },
    ])
    await clock.until(slow)
    await bulkheads.close()
    await expect(bulkheads.get('users').run(() => 1)).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
    })
  })

  it('registry rejects invalid defaults at once, and options that differ from an existing bulkhead', () => {
    expect(() => createBulkheadRegistry({ limit: 0 })).toThrow('bulkhead.limit')
    const bulkheads = createBulkheadRegistry({ limit: 1 })
    bulkheads.get('users', { limit: 5 })
    expect(() => bulkheads.get('users', { limit: 6 })).toThrow(
      'users.limit: was set to another value before',
    )
    expect(bulkheads.get('users', { limit: 5 }).limit).toBe(5)
    expect(bulkheads.get('plain')).toBe(bulkheads.get('plain', { limit: 1 }))
  })

  it('a closed registry refuses calls for new names as well', async () => {
    const bulkheads = createBulkheadRegistry({ limit: 1 })
    await bulkheads.close()
    await expect(bulkheads.get('late').run(() => 1)).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
    })
  })
})
