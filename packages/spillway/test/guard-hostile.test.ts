/** Values, listeners and tracers that throw when they are asked: one call's trouble stays its own. */
import { createSpillway, type Guard, type GuardOptions, onEvent } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CallFunction } from '../src/guard/context.js'
import type { CallTrace, GuardTracer } from '../src/guard/trace.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE, watch } from './guard-pod.js'

function throwing(name: string): object {
  return Object.defineProperty({}, name, {
    get() {
      throw new Error(`no ${name} for you`)
    },
  })
}

/** A response to look at, until its headers are. */
function badResponse(status: number) {
  const get = () => {
    throw new Error('no headers')
  }
  return { status, ok: status < 400, headers: { get } }
}

const HOSTILE: [string, () => object][] = [
  ['a status', () => throwing('status')],
  ['a pipe', () => throwing('pipe')],
  ['an iterator', () => Object.defineProperty({}, Symbol.asyncIterator, { get: () => fail() })],
  ['headers of a good answer', () => badResponse(200)],
  ['headers of a bad answer', () => badResponse(429)],
]

function fail(): never {
  throw new Error('no')
}

const OPTIONS: GuardOptions = {
  concurrency: { limit: 1 },
  queue: { size: 10, timeoutMs: '60s' },
  limits: [{ limit: 100, windowMs: '1h' }],
}

describe.each(HOSTILE)('a value that throws when it is asked for %s', (_, make) => {
  it.each([true, false])('is passed on as any other, async: %s', async (later) => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const value = make()
    const fn: CallFunction<object> = later ? async () => value : () => value
    const calls = [run(fn), run(fn), run(fn)]
    // One that says 429 makes those behind it wait.
    await clock.advance(50_000)
    expect(calls.map((call) => call.value === value)).toEqual([true, true, true])
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('an answer that cannot even be asked whether it is a promise', () => {
  it('fails its own call, and no other', async () => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const calls = [run(() => throwing('then')), run(() => throwing('then')), run(() => 'well')]
    await clock.advance(10)
    expect(calls.map((call) => call.state)).toEqual(['rejected', 'rejected', 'resolved'])
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('an error that throws when it is asked for a status', () => {
  it('reaches its caller as it is', async () => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const error = throwing('status')
    const call = run(() => Promise.reject(error))
    await clock.advance(10)
    expect(call.error).toBe(error)
    expect(guard.snapshot().active).toBe(0)
  })
})

const PER_USER: GuardOptions = { userLimits: [{ per: 'user', limit: 3, windowMs: '1h' }] }

describe.each(EVERYWHERE)('with a store that is %s,', (where) => {
  it.each([
    ['throws', () => fail()],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])(
    'an onUserLimit that %s is its own trouble: the call runs, and others do',
    async (_, onUserLimit) => {
      const { clock, run } = createGuardPod(PER_USER, { where })
      const failed: string[] = []
      onTestFinished(
        onEvent((event) => event.type === 'callback.failed' && failed.push(event.callback)),
      )
      const calls = [run(() => 1, { user: 'a', onUserLimit }), run(() => 2, { user: 'b' })]
      await clock.advance(50)
      expect(calls.map(({ value }) => value)).toEqual([1, 2])
      expect(failed).toEqual(_ === 'throws' ? ['onUserLimit'] : [])
    },
  )
})

it('a signal that is none fails its call, which does not run and costs nothing', async () => {
  const { clock, run, guard } = createGuardPod(PER_USER, { where: 'remote' })
  const signal = new AbortController() as unknown as AbortSignal
  let ran = 0
  const calls = [undefined, 10].map((timeoutMs) =>
    run(() => ran++, { user: 'a', signal, timeoutMs }),
  )
  await clock.advance(50)
  expect(calls.map(({ state }) => state)).toEqual(['rejected', 'rejected'])
  expect(ran).toBe(0)
  const left: number[] = []
  run(() => 1, { user: 'a', onUserLimit: ({ remaining }) => void left.push(remaining) })
  await clock.advance(50)
  expect(left).toEqual([2])
  expect(guard.snapshot().active).toBe(0)
})

it('what was charged for a call that is gone is given back, whatever its onUserLimit does', async () => {
  const { clock, run } = createGuardPod(PER_USER, { where: 'remote' })
  await clock.advance(50)
  const leaving = new AbortController()
  const gone = run(() => 1, { user: 'a', signal: leaving.signal, onUserLimit: fail })
  await clock.advance(1)
  leaving.abort()
  await clock.advance(50)
  expect(gone.state).toBe('rejected')
  const left: number[] = []
  run(() => 1, { user: 'a', onUserLimit: ({ remaining }) => void left.push(remaining) })
  await clock.advance(50)
  expect(left).toEqual([2])
})

it('a guard that is closed before it knows of a store leaves no call waiting for that', async () => {
  const { clock, run, spillway, connection } = createGuardPod(PER_USER, { where: 'remote' })
  connection?.goDown()
  const call = run(() => 1, { user: 'a' })
  await clock.advance(1)
  await clock.until(spillway.close({ graceMs: 0 }))
  await clock.advance(1)
  expect(call.error).toMatchObject({ code: 'CLOSED' })
})

describe('a tracer that throws when an attempt begins', () => {
  it('fails that call alone, whose slot goes to the next', async () => {
    const clock = createVirtualClock()
    let attempts = 0
    const tracer: GuardTracer = {
      begin: () => ({
        attempt: () => {
          if (++attempts <= 2) throw new Error('no attempt')
          return { run: (fn) => fn(), headers: {}, failed: () => {}, end: () => {} }
        },
        answered: () => {},
        refused: () => {},
      }),
    }
    const spillway = createSpillway({ clock, tracer })
    onTestFinished(() => spillway.close({ graceMs: 0 }))
    const guard: Guard = spillway.guard('traced', { ...OPTIONS, pace: PACE })
    const calls = [1, 2, 3, 4].map((each) =>
      watch(
        clock,
        guard.run(() => each),
      ),
    )
    await clock.advance(1_000)
    expect(calls.map((call) => call.state)).toEqual([
      'rejected',
      'rejected',
      'resolved',
      'resolved',
    ])
    expect(guard.snapshot().active).toBe(0)
  })
})

/** Follows attempts, and throws where it is told to. */
function tracerThrowing(...where: ('begins' | 'hedges' | 'fails' | 'ends')[]): GuardTracer {
  const at = (each: (typeof where)[number]) => {
    if (where.includes(each)) throw new Error(`no tracing when one ${each}`)
  }
  const attempt = ({ hedge }: { hedge: boolean }) => {
    at(hedge ? 'hedges' : 'begins')
    return {
      run: <T>(fn: () => T) => fn(),
      headers: {},
      failed: () => at('fails'),
      end: () => at('ends'),
    }
  }
  return { begin: () => ({ attempt, answered: () => {}, refused: () => {} }) }
}

describe('a tracer that throws when a second attempt begins', () => {
  it.each([
    ['answers', async () => 'well'],
    ['fails', () => Promise.reject(new Error('down'))],
  ])('costs no slot, and the call goes as its first attempt does, which %s', async (_, finish) => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock, tracer: tracerThrowing('hedges') })
    onTestFinished(() => spillway.close({ graceMs: 0 }))
    const guard = spillway.guard('hedged', {
      concurrency: { limit: 2 },
      hedge: { delayMs: 100 },
    })
    let begun = 0
    const sleep = () => new Promise<void>((resolve) => clock.schedule(300, resolve))
    const call = watch(
      clock,
      guard.run(() => {
        begun++
        return sleep().then(finish)
      }),
    )
    await clock.advance(200)
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(200)
    expect(call.value ?? (call.error as Error).message).toMatch(/well|down/)
    expect(begun).toBe(1)
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('a tracer that throws when an attempt fails or ends', () => {
  it('keeps neither the call from its end nor the slot from the next', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock, tracer: tracerThrowing('fails', 'ends') })
    onTestFinished(() => spillway.close({ graceMs: 0 }))
    const guard = spillway.guard('traced', OPTIONS)
    const calls = [
      guard.run(async () => 1),
      guard.run(() => Promise.reject(new Error('down'))),
      guard.run(async () => 3),
    ].map((each) => watch(clock, each))
    await clock.advance(1_000)
    expect(calls.map((call) => call.state)).toEqual(['resolved', 'rejected', 'resolved'])
    expect(calls[1]?.error).toMatchObject({ message: 'down' })
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('a tracer that throws when a call begins, or is over', () => {
  it.each<keyof CallTrace | 'begin'>(['begin', 'answered', 'refused'])(
    'is no trouble of the call: %s',
    async (where) => {
      const clock = createVirtualClock()
      const at = (each: typeof where) => {
        if (where === each) throw new Error(`no tracing: ${each}`)
      }
      const tracer: GuardTracer = {
        begin: (...asked) => {
          at('begin')
          const { attempt } = tracerThrowing().begin(...asked)
          return { attempt, answered: () => at('answered'), refused: () => at('refused') }
        },
      }
      const spillway = createSpillway({ clock, tracer })
      onTestFinished(() => spillway.close({ graceMs: 0 }))
      const guard = spillway.guard('traced', OPTIONS)
      const calls = [guard.run(async () => 1), guard.run(() => Promise.reject(new Error('down')))]
      const watched = calls.map((each) => watch(clock, each))
      await clock.advance(1_000)
      expect(watched.map((call) => call.state)).toEqual(['resolved', 'rejected'])
      expect(guard.snapshot().active).toBe(0)
    },
  )
})

/** As another fetch makes them: what Node allows no body for has one. */
class ForeignResponse {
  readonly ok = true
  readonly statusText = ''
  readonly headers = new Headers()
  readonly body = new ReadableStream({ start: (controller) => controller.close() })

  constructor(readonly status: number) {}
}

describe.each([204, 304, 99])('a foreign response with a body and the status %i', (status) => {
  it.each([true, false])(
    'is passed on as it is, and its call is over, async: %s',
    async (later) => {
      const { clock, run, guard } = createGuardPod(OPTIONS)
      const answer = new ForeignResponse(status)
      const fn: CallFunction<unknown> = later ? async () => answer : () => answer
      const calls = [run(fn), run(() => 'next')]
      await clock.advance(10)
      expect(calls[0]?.value).toBe(answer)
      expect(answer.body.locked).toBe(false)
      expect(calls[1]?.value).toBe('next')
      expect(guard.snapshot().active).toBe(0)
    },
  )
})

describe('a listener that throws when its call is given up', () => {
  it('keeps neither its own call from its end, nor later ones, and is told of', async () => {
    const { clock, run, guard } = createGuardPod({ timeout: { callMs: 100 } })
    const failed: unknown[] = []
    onTestFinished(
      onEvent((event) => {
        if (event.type === 'callback.failed') failed.push(event.callback)
      }),
    )
    const hanging: CallFunction<never> = (context) => {
      context.onAbort(fail)
      return new Promise(() => {})
    }
    const first = [1, 2].map(() => run(hanging))
    await clock.advance(150)
    const second = run(hanging)
    await clock.advance(150)
    expect([...first, second].map((call) => call.state)).toEqual(Array(3).fill('rejected'))
    expect(second.error).toMatchObject({ code: 'CALL_TIMEOUT' })
    expect(failed).toEqual(Array(3).fill('onAbort'))
    expect(guard.snapshot().active).toBe(0)
  })
})

/** So that all but the first wait. */
const PACE = { limit: 100, windowMs: '1s', burst: 1 } as const
