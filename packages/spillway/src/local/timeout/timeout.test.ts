import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import type { Clock } from '../../core/time/clock.js'
import { createDeadline, currentDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { TimeoutContext } from './timed-call.js'
import { createTimeout, type TimeoutOptions } from './timeout.js'

function setup(options: TimeoutOptions = { callMs: 100 }) {
  const clock = createVirtualClock()
  const timeout = createTimeout({ name: 'openai', clock, ...options })
  return { clock, timeout }
}

const never = () => new Promise<never>(() => {})

describe('call timeout', () => {
  it('timeout ends the call after callMs with an error that has the numbers', async () => {
    const { clock, timeout } = setup()
    const call = timeout.run(never)
    await expect(clock.until(call)).rejects.toMatchObject({
      code: 'CALL_TIMEOUT',
      stage: 'timeout',
      scope: 'local',
      status: 504,
      details: { kind: 'call', limitMs: 100, elapsedMs: 100 },
      message: 'openai: timed out, no answer within 100 ms (timeout.callMs)',
    })
    expect(clock.now()).toBe(100)
    expect(clock.pending).toBe(0)
  })

  it('timeout passes values and errors through and leaves no timer', async () => {
    const { clock, timeout } = setup()
    const boom = new Error('boom')
    await expect(clock.until(timeout.run(() => sleep(clock, 99).then(() => 'ok')))).resolves.toBe(
      'ok',
    )
    await expect(timeout.run(() => Promise.reject(boom))).rejects.toBe(boom)
    await expect(timeout.run(() => 'at once')).resolves.toBe('at once')
    const throwing = () => {
      throw boom
    }
    await expect(timeout.run(throwing)).rejects.toBe(boom)
    await clock.settle()
    expect(clock.pending).toBe(0)
  })

  it('timeout aborts the signal of its own call only', async () => {
    const { clock, timeout } = setup()
    const signals: AbortSignal[] = []
    const call = (ms: number) =>
      timeout.run(({ signal }) => {
        signals.push(signal)
        return sleep(clock, ms)
      })
    const slow = call(1_000).catch((error) => error)
    await clock.advance(50)
    const quick = call(90)
    await clock.advance(50)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    expect(signals[0]?.reason).toBe(await slow)
    await expect(clock.until(quick)).resolves.toBeUndefined()
    expect(signals[1]?.aborted).toBe(false)
  })

  it('timeout creates an AbortController only if the function reads the signal', async () => {
    const { timeout } = setup()
    const { AbortController } = globalThis
    let made = 0
    globalThis.AbortController = class extends AbortController {
      constructor() {
        super()
        made++
      }
    }
    try {
      await timeout.run(() => Promise.resolve())
      expect(made).toBe(0)
      await timeout.run(async ({ signal }) => signal.aborted)
      expect(made).toBe(1)
    } finally {
      globalThis.AbortController = AbortController
    }
  })

  it('a signal that is first read after the timeout is already aborted', async () => {
    const { clock, timeout } = setup()
    let context: TimeoutContext | undefined
    const call = timeout.run((each) => {
      context = each
      return never()
    })
    await expect(clock.until(call)).rejects.toThrow()
    expect(context?.signal.aborted).toBe(true)
    expect(context?.signal.reason).toMatchObject({ code: 'CALL_TIMEOUT' })
  })

  it('the synchronous part of a call counts towards callMs', async () => {
    const { clock } = setup()
    let workedMs = 0
    const busy: Clock = {
      now: () => clock.now() + workedMs,
      wallMs: () => clock.wallMs(),
      schedule: (ms, run) => clock.schedule(ms, run),
      pollTurn: (run) => clock.pollTurn(run),
    }
    const timeout = createTimeout({ callMs: 100, clock: busy })
    const call = timeout.run(() => {
      workedMs = 70
      return never()
    })
    await expect(clock.until(call)).rejects.toMatchObject({ code: 'CALL_TIMEOUT' })
    expect(clock.now()).toBe(30)
  })

  it('timeout ignores a late rejection of the call it gave up', async () => {
    const { clock, timeout } = setup()
    const call = timeout.run(() => sleep(clock, 500).then(() => Promise.reject(new Error('late'))))
    await expect(clock.until(call)).rejects.toMatchObject({ code: 'CALL_TIMEOUT' })
    await clock.drain()
  })

  it('an abort by the caller ends the call at once with its reason', async () => {
    const { clock, timeout } = setup()
    const abort = new AbortController()
    const reason = new Error('hung up')
    let seen: AbortSignal | undefined
    const call = timeout.run(
      ({ signal }) => {
        seen = signal
        return never()
      },
      { signal: abort.signal },
    )
    abort.abort(reason)
    await expect(call).rejects.toBe(reason)
    expect(seen?.reason).toBe(reason)
    await clock.settle()
    expect(clock.pending).toBe(0)
    let called = false
    const refused = timeout.run(
      () => {
        called = true
      },
      { signal: abort.signal },
    )
    await expect(refused).rejects.toBe(reason)
    expect(called).toBe(false)
  })

  it('timeout notices an abort that the function itself causes', async () => {
    const { timeout } = setup()
    const abort = new AbortController()
    const call = timeout.run(
      () => {
        abort.abort(new Error('from inside'))
        return never()
      },
      { signal: abort.signal },
    )
    await expect(call).rejects.toThrow('from inside')
  })
})

describe('timeout and deadline', () => {
  it('a call never runs past its deadline, however long callMs is', async () => {
    const { clock, timeout } = setup({ callMs: 10_000 })
    const call = runWithDeadline(createDeadline(40, clock), () => timeout.run(never))
    await expect(clock.until(call)).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      details: { kind: 'deadline', called: true },
    })
    expect(clock.now()).toBe(40)
  })

  it('an expired deadline prevents the function from being called', async () => {
    const { clock, timeout } = setup()
    let called = false
    const call = runWithDeadline(createDeadline(0, clock), () =>
      timeout.run(() => {
        called = true
      }),
    )
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(called).toBe(false)
  })

  it('totalMs sets the deadline for everything inside the call', async () => {
    const { clock, timeout } = setup({ totalMs: '2s' })
    const inner = createTimeout({ callMs: '1h', clock })
    const call = timeout.run(async ({ deadline }) => {
      expect(deadline?.remainingMs()).toBe(2_000)
      await sleep(clock, 500)
      expect(currentDeadline()?.remainingMs()).toBe(1_500)
      return inner.run(never)
    })
    await expect(clock.until(call)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(clock.now()).toBe(2_000)
  })
})

describe('firstByteMs and idleMs', () => {
  const streaming =
    (clock: ReturnType<typeof createVirtualClock>, pauses: number[]) =>
    async ({ progress }: TimeoutContext) => {
      for (const ms of pauses) {
        await sleep(clock, ms)
        progress()
      }
      return 'complete'
    }

  it('a stream may run as long as it keeps sending within idleMs', async () => {
    const { clock, timeout } = setup({ firstByteMs: 100, idleMs: 50 })
    const call = timeout.run(streaming(clock, [99, 49, 49, 49, 49, 49, 49, 49]))
    await expect(clock.until(call)).resolves.toBe('complete')
    expect(clock.pending).toBe(0)
  })

  it.each([
    {
      pauses: [101],
      kind: 'firstByte',
      message: 'openai: timed out, no first byte within 100 ms (timeout.firstByteMs)',
      atMs: 100,
    },
    {
      pauses: [10, 51],
      kind: 'idle',
      message: 'openai: timed out, no data for 50 ms (timeout.idleMs)',
      atMs: 60,
    },
  ])('timeout cuts off a silent call: $kind', async ({ pauses, kind, message, atMs }) => {
    const { clock, timeout } = setup({ firstByteMs: 100, idleMs: 50 })
    const call = timeout.run(streaming(clock, pauses))
    await expect(clock.until(call)).rejects.toMatchObject({ message, details: { kind } })
    expect(clock.now()).toBe(atMs)
    await clock.drain()
    expect(clock.pending).toBe(0)
  })

  it.each([
    { what: 'its own limit', callMs: 200, code: 'CALL_TIMEOUT', kind: 'call' },
    { what: 'its deadline', callMs: 500, code: 'DEADLINE_EXCEEDED', kind: 'deadline' },
  ])('a call that keeps sending is still cut off by $what', async ({ callMs, code, kind }) => {
    const { clock, timeout } = setup({ callMs, firstByteMs: 100, idleMs: 60 })
    const deadline = createDeadline(200 + (kind === 'call' ? 1 : 0), clock)
    const call = runWithDeadline(deadline, () =>
      timeout.run(streaming(clock, [50, 50, 50, 50, 50])),
    )
    await expect(clock.until(call)).rejects.toMatchObject({ code, details: { kind } })
    expect(clock.now()).toBe(200)
    await clock.drain()
    expect(clock.pending).toBe(0)
  })
})

describe('adaptive timeout', () => {
  const adaptive = { margin: 0.5, minMs: 20, minimumCalls: 10 }

  it('adaptive timeout follows the p99 of recent calls within its bounds', async () => {
    const { clock, timeout } = setup({ callMs: 10_000, adaptive })
    const call = (ms: number) => clock.until(timeout.run(() => sleep(clock, ms)))
    expect(timeout.callMs).toBe(10_000)
    for (let i = 0; i < 200; i++) await call(100)
    expect(timeout.callMs).toBeGreaterThan(140)
    expect(timeout.callMs).toBeLessThan(160)
    for (let i = 0; i < 200; i++) await call(1)
    await clock.advance(60_000)
    for (let i = 0; i < 500; i++) await call(1)
    expect(timeout.callMs).toBe(20)
  })

  it('adaptive timeout grows when the downstream becomes slower, instead of cutting off every call', async () => {
    const { clock, timeout } = setup({ callMs: 5_000, adaptive })
    const call = (ms: number) => clock.until(timeout.run(() => sleep(clock, ms))).catch(() => {})
    for (let i = 0; i < 100; i++) await call(100)
    let failures = 0
    for (let i = 0; i < 100; i++) {
      await clock.until(timeout.run(() => sleep(clock, 400))).catch(() => failures++)
    }
    expect(failures).toBeLessThan(15)
    expect(timeout.callMs).toBeGreaterThan(400)
    for (let i = 0; i < 100; i++) await call(4_900)
    expect(timeout.callMs).toBe(5_000)
  })
})

describe('timeout options', () => {
  it('createTimeout names the invalid option', () => {
    expect(() => createTimeout({})).toThrow('timeout: needs one of callMs')
    expect(() => createTimeout({ callMs: 0 })).toThrow('timeout.callMs: must be')
    expect(() => createTimeout({ totalMs: 5, adaptive: {} })).toThrow('timeout.adaptive: needs')
    const inverted = { callMs: 50, adaptive: { minMs: 60 } }
    expect(() => createTimeout(inverted)).toThrow('timeout.adaptive.minMs: must not be above')
    const typo = { calMs: 5 } as TimeoutOptions
    expect(() => createTimeout(typo)).toThrow(
      "timeout.calMs: unknown option; did you mean 'callMs'?",
    )
  })
})

describe('timeout events', () => {
  it('timeout emits timeout.fired with the limit that was hit', async () => {
    const { clock, timeout } = setup()
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    await expect(clock.until(timeout.run(never))).rejects.toThrow()
    stop()
    expect(events).toEqual([{ type: 'timeout.fired', name: 'openai', kind: 'call', limitMs: 100 }])
  })
})
