/** Values, listeners and tracers that throw affect only their own call. */
import { createSpillway, type Guard, type GuardOptions, onEvent } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CallFunction } from '../src/guard/pipeline/context.js'
import type { CallTrace, GuardTracer } from '../src/guard/pipeline/trace.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE, watch } from './guard-pod.js'

function throwing(name: string): object {
  return Object.defineProperty({}, name, {
    get() {
      throw new Error(`no ${name} for you`)
    },
  })
}

/** A response whose `headers.get` throws. */
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

describe.each(HOSTILE)('value that throws when the guard reads %s', (_, make) => {
  it.each([true, false])('guard returns a hostile value unchanged, async: %s', async (later) => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const value = make()
    const fn: CallFunction<object> = later ? async () => value : () => value
    const calls = [run(fn), run(fn), run(fn)]
    // A value with status 429 makes the next calls wait.
    await clock.advance(50_000)
    expect(calls.map((call) => call.value === value)).toEqual([true, true, true])
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('value with a throwing `then`', () => {
  it('a value whose `then` getter throws fails its own call and no other', async () => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const calls = [run(() => throwing('then')), run(() => throwing('then')), run(() => 'well')]
    await clock.advance(10)
    expect(calls.map((call) => call.state)).toEqual(['rejected', 'rejected', 'resolved'])
    expect(guard.snapshot().active).toBe(0)
  })
})

describe('error with a throwing status', () => {
  it('an error whose status getter throws reaches its caller unchanged', async () => {
    const { clock, run, guard } = createGuardPod(OPTIONS)
    const error = throwing('status')
    const call = run(() => Promise.reject(error))
    await clock.advance(10)
    expect(call.error).toBe(error)
    expect(guard.snapshot().active).toBe(0)
  })
})

const PER_USER: GuardOptions = { userLimits: [{ per: 'user', limit: 3, windowMs: '1h' }] }

describe.each(EVERYWHERE)('onUserLimit that fails, store: %s', (where) => {
  it.each([
    ['throws', () => fail()],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])(
    'an onUserLimit that %s affects neither its own call nor any other call',
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

it('an invalid signal fails its call, which does not run and costs nothing', async () => {
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

it('the charge of an aborted call is refunded although its onUserLimit throws', async () => {
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

it('a guard closed before the first reply of the store leaves no call waiting', async () => {
  const { clock, run, spillway, connection } = createGuardPod(PER_USER, { where: 'remote' })
  connection?.goDown()
  const call = run(() => 1, { user: 'a' })
  await clock.advance(1)
  await clock.until(spillway.close({ graceMs: 0 }))
  await clock.advance(1)
  expect(call.error).toMatchObject({ code: 'SHUTTING_DOWN' })
})

describe('tracer that throws when an attempt begins', () => {
  it('a tracer that throws when an attempt begins fails only that call and frees its slot', async () => {
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

/** A tracer that throws in the given places. */
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

describe('tracer that throws when a hedge begins', () => {
  it.each([
    ['answers', async () => 'well'],
    ['fails', () => Promise.reject(new Error('down'))],
  ])('a throwing tracer costs no hedge slot; the first attempt %s', async (_, finish) => {
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

describe('tracer that throws when an attempt fails or ends', () => {
  it('a tracer that throws when an attempt fails or ends delays neither the call nor the next one', async () => {
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

describe('tracer that throws when a call begins or ends', () => {
  it.each<keyof CallTrace | 'begin'>(['begin', 'answered', 'refused'])(
    'a tracer that throws does not affect the call: %s',
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

/** A response of another fetch implementation, which has a body where Node allows none. */
class ForeignResponse {
  readonly ok = true
  readonly statusText = ''
  readonly headers = new Headers()
  readonly body = new ReadableStream({ start: (controller) => controller.close() })

  constructor(readonly status: number) {}
}

describe.each([204, 304, 99])('foreign response with a body and status %i', (status) => {
  it.each([true, false])(
    'guard returns a foreign response unchanged and its call ends, async: %s',
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

describe('abort listener that throws', () => {
  it('an abort listener that throws delays no call and emits callback.failed', async () => {
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

/** All calls but the first have to wait. */
const PACE = { limit: 100, windowMs: '1s', burst: 1 } as const
