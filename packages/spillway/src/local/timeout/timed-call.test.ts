/** One call with its timers, as a guard uses it: with streamed responses, deadlines and listeners. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { abandonedWork, collectCalls } from '../../core/abandoned-work.js'
import type { CallerSignal } from '../../core/abort.js'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { Deadline } from '../../core/time/deadline.js'
import { TimerList } from '../../core/time/timer-list.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { AdaptiveTimeout } from './adaptive-timeout.js'
import { type CallLimits, TimedCall, type TimeoutContext } from './timed-call.js'

const ANSWER = { body: 'begun' }
const STARTED_MS = 50

interface Settings {
  callMs?: number
  firstByteMs?: number
  idleMs?: number
  adaptive?: AdaptiveTimeout
  deadlineMs?: number
  signal?: CallerSignal
}

/** A call that begins at 50 ms, and the results that its owner receives. */
async function setup(settings: Settings = {}) {
  const { callMs, firstByteMs, idleMs, adaptive, deadlineMs, signal } = settings
  const clock = createVirtualClock()
  await clock.advance(STARTED_MS)
  const limits: CallLimits = {
    ...{ name: 'openai', clock, firstByteMs, idleMs, fixedMs: callMs, adaptive },
    timers: new TimerList(clock, callMs ?? Number.NaN),
    firstByteTimers: new TimerList(clock, firstByteMs ?? Number.NaN),
  }
  const deadline = deadlineMs === undefined ? undefined : new Deadline(deadlineMs, clock)
  const call = new TimedCall<unknown>(limits, clock.now(), deadline, signal)
  const ends: unknown[] = []
  const begin = (
    fn: (context: TimeoutContext) => unknown,
    isStreamed: (value: unknown) => boolean = () => false,
  ) =>
    call.start(
      fn,
      call,
      {
        onValue: (value, streaming) => ends.push(['value', value, streaming]),
        onError: (error) => ends.push(['error', error]),
      },
      isStreamed,
    )
  /** Begins a call whose response has begun, after some time. */
  const stream = async (afterMs = 0) => {
    begin(
      () => new Promise((resolve) => clock.schedule(afterMs, () => resolve(ANSWER))),
      () => true,
    )
    await clock.advance(afterMs)
    const lost: unknown[] = []
    call.body = { givenUp: (error) => lost.push(error) }
    return lost
  }
  return { limits, clock, call, ends, begin, stream }
}

const never = () => new Promise<never>(() => {})
const timeoutOf = (kind: string, limitMs: number) => ({
  code: kind === 'deadline' ? 'DEADLINE_EXCEEDED' : 'CALL_TIMEOUT',
  details: { kind, limitMs },
})

function recordEvents(): SpillwayEvent[] {
  const events: SpillwayEvent[] = []
  onTestFinished(onEvent((event) => events.push(event)))
  return events
}

describe('timed call of a streamed response', () => {
  it('the call limit ends when the response begins, and the owner receives the response once', async () => {
    const { clock, call, ends, stream } = await setup({ callMs: 100 })
    const lost = await stream(90)
    await clock.advance(1_000)
    expect(ends).toEqual([['value', ANSWER, true]])
    expect([lost, call.givenUp, clock.pending]).toEqual([[], false, 0])
  })

  it('the deadline still applies after the response has begun, and then ends only the body', async () => {
    const { clock, call, ends, stream } = await setup({ callMs: 100, deadlineMs: 450 })
    const lost = await stream(10)
    await clock.advance(389)
    expect(lost).toEqual([])
    await clock.advance(1)
    expect(lost).toMatchObject([timeoutOf('deadline', 400)])
    expect(ends).toEqual([['value', ANSWER, true]])
    expect([call.givenUp, call.leftBehind]).toEqual([true, undefined])
    expect(abandonedWork(lost[0])).toBeUndefined()
  })

  it.each([
    [{ firstByteMs: 200, idleMs: 300 }, false, timeoutOf('firstByte', 200)],
    [{ firstByteMs: 200, idleMs: 300 }, true, timeoutOf('idle', 300)],
    [{ idleMs: 300 }, false, timeoutOf('idle', 300)],
  ])(
    'with %j, silence ends a response; whether bytes have arrived: %s',
    async (limits, begun, error) => {
      const { call, stream } = await setup({ callMs: 100, ...limits })
      const lost = await stream()
      call.silent(begun)
      expect(lost).toMatchObject([error])
    },
  )

  it('the time until the response begins is measured only if the first byte has a limit', async () => {
    const measured = await setup({ firstByteMs: 200 })
    await measured.stream(30)
    const unmeasured = await setup({ callMs: 200 })
    await unmeasured.stream(30)
    expect([measured.call.answerMs, unmeasured.call.answerMs]).toEqual([30, 0])
  })

  it('an abort by the caller ends a response that began synchronously, but not a completed one', async () => {
    const caller = new AbortController()
    const { call, begin } = await setup({ callMs: 100, signal: caller.signal })
    const over = await setup({ callMs: 100, signal: caller.signal })
    const lost: unknown[] = []
    for (const each of [call, over.call]) each.body = { givenUp: (error) => lost.push(error) }
    begin(
      () => ANSWER,
      () => true,
    )
    await over.stream()
    over.call.end()
    caller.abort('left')
    expect(lost).toEqual(['left'])
    expect([call.givenUp, over.call.givenUp]).toEqual([true, false])
  })

  it('a value that is not an object is never treated as a streamed response', async () => {
    const { clock, begin, ends } = await setup({ callMs: 100 })
    begin(
      () => 'text',
      () => true,
    )
    expect(ends).toEqual([['value', 'text', false]])
    expect(clock.pending).toBe(0)
  })

  it('progress before the response does not arm the call limit again after it', async () => {
    const { clock, call, ends, stream } = await setup({ callMs: 100 })
    const lost = await stream(10)
    call.progress()
    await clock.advance(1_000)
    expect([ends.length, lost, clock.pending]).toEqual([1, [], 0])
  })
})

describe('timed call with several limits', () => {
  it.each([
    [{ callMs: 100, firstByteMs: 99 }, 'firstByte', 99],
    [{ callMs: 100, firstByteMs: 100 }, 'call', 100],
    [{ callMs: 100, deadlineMs: 149 }, 'deadline', 99],
    [{ callMs: 100, deadlineMs: 151 }, 'call', 100],
    [{ deadlineMs: 90 }, 'deadline', 40],
    [{ firstByteMs: 70 }, 'firstByte', 70],
    [{ callMs: 100, deadlineMs: 30 }, 'deadline', 0],
  ])(
    'with %j a call without an answer ends by its %s limit after %d ms',
    async (limits, kind, ms) => {
      const { clock, begin, ends } = await setup(limits)
      begin(never)
      await clock.advance(Math.max(0, ms - 1))
      if (ms > 0) expect(ends).toEqual([])
      await clock.advance(1)
      expect(ends).toMatchObject([['error', timeoutOf(kind, ms)]])
      const [[, error]] = ends as [[string, { details: { elapsedMs: number } }]]
      expect(error.details.elapsedMs).toBeLessThanOrEqual(Math.max(1, ms))
      expect(clock.pending).toBe(0)
    },
  )

  it('a call without any limit waits for its answer without a timer', async () => {
    const { clock, begin, ends } = await setup()
    begin(never)
    expect([clock.pending, ends]).toEqual([0, []])
  })

  it('the first sign of progress ends the limit of the first byte, and the call limit remains', async () => {
    const { clock, call, begin, ends } = await setup({ callMs: 100, firstByteMs: 40 })
    begin(never)
    await clock.advance(30)
    call.progress()
    await clock.advance(69)
    expect(ends).toEqual([])
    await clock.advance(1)
    expect(ends).toMatchObject([['error', timeoutOf('call', 100)]])
  })

  it('each sign of progress restarts the idle limit, and one after the end starts none', async () => {
    const { clock, call, begin, ends } = await setup({ callMs: 1_000, idleMs: 20 })
    begin(never)
    call.progress()
    await clock.advance(15)
    call.progress()
    await clock.advance(19)
    expect(ends).toEqual([])
    await clock.advance(1)
    expect(ends).toMatchObject([['error', timeoutOf('idle', 20)]])
    call.progress()
    expect(clock.pending).toBe(0)
  })

  it('an adaptive limit learns from answers and from its own timeouts, not from other limits', async () => {
    const recorded: [number, number][] = []
    const adaptive = {
      limitMs: () => 60,
      record: (nowMs: number, ms: number) => recorded.push([nowMs, ms]),
    } as unknown as AdaptiveTimeout
    const run = async (settings: Settings, fn: () => unknown, ms: number) => {
      const { clock, begin } = await setup({ adaptive, callMs: 100, ...settings })
      begin(fn)
      await clock.advance(ms)
    }
    await run({}, never, 60)
    await run({}, async () => 'answer', 0)
    await run({ deadlineMs: STARTED_MS + 30 }, never, 60)
    await run({}, () => Promise.reject(new Error('failed')), 60)
    expect(recorded).toEqual([
      [110, 60],
      [50, 0],
    ])
  })
})

describe('timed call that is given up', () => {
  it('the signal of a call that is given up is aborted with the error, even if it is first read later', async () => {
    const early = await setup({ callMs: 100 })
    const late = await setup({ callMs: 100 })
    const { signal } = early.call
    for (const { call, begin } of [early, late]) {
      begin(never)
      call.giveUp('left')
    }
    expect([signal.aborted, signal.reason]).toEqual([true, 'left'])
    expect([late.call.signal.aborted, late.call.signal.reason]).toEqual([true, 'left'])
    expect(early.call.givenUp).toBe(true)
  })

  it('an abort listener is called with the error, even if it is added after the call was given up', async () => {
    const { call, begin } = await setup({ callMs: 100 })
    const reasons: unknown[] = []
    call.onAbort((reason) => reasons.push(reason))
    begin(never)
    expect(reasons).toEqual([])
    call.giveUp('left')
    call.onAbort((reason) => reasons.push(`late: ${reason}`))
    expect(reasons).toEqual(['left', 'late: left'])
  })

  it('an abort listener that throws causes an event, and the call ends as usual', async () => {
    const events = recordEvents()
    const { call, begin, ends } = await setup({ callMs: 100 })
    const error = new Error('listener')
    call.onAbort(() => {
      throw error
    })
    begin(never)
    call.giveUp('left')
    expect(ends).toEqual([['error', 'left']])
    const failed = { type: 'callback.failed', name: 'openai', callback: 'onAbort', error }
    expect(events).toMatchObject([failed])
  })

  it('an abort listener whose promise rejects has no effect', async () => {
    const { clock, call, begin, ends } = await setup({ callMs: 100 })
    call.onAbort(() => Promise.reject(new Error('listener')))
    begin(never)
    call.giveUp('left')
    await clock.settle()
    expect(ends).toEqual([['error', 'left']])
  })

  it('work that still runs after a call was given up is available from the call and from its error', async () => {
    const { call, begin } = await setup({ callMs: 100 })
    const work = never()
    begin(() => work)
    expect(call.leftBehind).toBeUndefined()
    const error = new Error('left')
    call.giveUp(error)
    expect(call.leftBehind).toBe(work)
    expect(abandonedWork(error)).toBeInstanceOf(Promise)
  })

  it('a late answer or error of a call that was given up reaches no owner, and the answer is discarded', async () => {
    let cancelled = 0
    const answered = await setup({ callMs: 100 })
    const failed = await setup({ callMs: 100 })
    answered.begin(async () => new Response(new ReadableStream({ cancel: () => void cancelled++ })))
    failed.begin(() => Promise.reject(new Error('late')))
    for (const { call } of [answered, failed]) call.giveUp('left')
    await answered.clock.settle()
    expect([answered.ends, failed.ends]).toEqual([[['error', 'left']], [['error', 'left']]])
    expect(cancelled).toBe(1)
  })

  it('a completed call cannot be given up', async () => {
    const { call, begin, ends } = await setup({ callMs: 100 })
    begin(() => 'value')
    call.giveUp('left')
    expect([ends, call.givenUp]).toEqual([[['value', 'value', false]], false])
  })
})

describe('function of a timed call', () => {
  it('a thenable that is not a promise is awaited', async () => {
    const { clock, begin, ends } = await setup({ callMs: 100 })
    // biome-ignore lint/suspicious/noThenProperty: the test needs one
    begin(() => ({ then: (resolve: (value: string) => void) => resolve('value') }))
    await clock.settle()
    expect(ends).toEqual([['value', 'value', false]])
  })

  it('collectCalls() collects only calls that begin inside it', async () => {
    const collected: unknown[] = []
    const { limits } = await setup()
    let inside: unknown
    collectCalls(
      () => {
        inside = new TimedCall(limits, 0, undefined, undefined)
      },
      (calls) => collected.push(...calls),
    )
    expect(collected).toEqual([inside])
  })
})
