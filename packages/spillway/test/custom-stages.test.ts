/** Stages that an application adds to a guard. */
import { describe, expect, it } from 'vitest'
import { guardCard } from '../../dashboard/src/feed/guard-card.js'
import { SpillwayError } from '../src/core/errors.js'
import { onEvent, type SpillwayEvent } from '../src/core/events.js'
import { OptionsError } from '../src/core/options/checks.js'
import { sleep } from '../src/core/time/sleep.js'
import { checkGuard, type GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import {
  type CustomStageCall,
  type CustomStageOptions,
  customStage,
} from '../src/guard/stages/custom.js'
import { exposeToPrometheus, type Sample } from '../src/observe/prometheus.js'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  fateOf,
  vendorError,
} from './guard-pod.js'

/** Refuses every call while it is on. */
function createSwitch(options: Partial<CustomStageOptions> = {}) {
  const state = { on: true, seen: [] as CustomStageCall[] }
  const stage = customStage({
    name: 'maintenance',
    after: 'shed',
    check(call) {
      state.seen.push(call)
      return state.on
        ? { refuse: 'the window ends at 02:00', retryAfterMs: 60_000, details: { window: 1 } }
        : undefined
    },
    snapshot: () => ({ on: state.on }),
    ...options,
  } as CustomStageOptions)
  return { state, stage }
}

function eventsOf(run: () => unknown): SpillwayEvent[] {
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => events.push(event))
  run()
  stop()
  return events
}

describe.each(EVERYWHERE)('custom stage between shed and user limit, store: %s', (where) => {
  const userLimits = [{ per: 'user', limit: 1, windowMs: '1h' }] as const

  it('a custom stage refuses with STAGE_REFUSED before the user limit is charged', async () => {
    const { state, stage } = createSwitch()
    const { clock, quick, guard } = createGuardPod({ userLimits, stages: [stage] }, { where })
    await clock.advance(1_500)
    const refused = quick({ user: 'ann' })
    await clock.advance(10)
    expect(refused.error).toBeInstanceOf(SpillwayError)
    expect(refused.error).toMatchObject({
      code: 'STAGE_REFUSED',
      stage: 'maintenance',
      scope: 'local',
      status: 503,
      retryAfterMs: 60_000,
      details: { name: 'openai', reason: 'the window ends at 02:00', window: 1 },
      message: 'openai: refused by stage maintenance: the window ends at 02:00',
    })
    expect(state.seen[0]).toMatchObject({ guard: 'openai', kind: 'call', attempt: 1, user: 'ann' })
    state.on = false
    const allowed = quick({ user: 'ann' })
    await clock.advance(10)
    expect(fateOf(allowed)).toBe('resolved')
    expect(guard.snapshot().refused).toEqual([
      { stage: 'maintenance', code: 'STAGE_REFUSED', count: 1 },
    ])
  })

  it('a custom stage in shadow mode refuses no call and reports every refusal', async () => {
    for (const shadow of [['maintenance'], true] as const) {
      const { stage } = createSwitch()
      const { clock, quick, guard } = createGuardPod({ stages: [stage], shadow }, { where })
      const reported: string[] = []
      const calls = [1, 2].map(() => quick({ onShadow: ({ stage: by }) => reported.push(by) }))
      await clock.advance(10)
      expect(countFates(calls)).toEqual({ resolved: 2 })
      expect(reported).toEqual(['maintenance', 'maintenance'])
      const { refused, wouldHaveRefused, stages } = guard.snapshot()
      expect(refused).toEqual([])
      expect(wouldHaveRefused).toEqual([{ stage: 'maintenance', code: 'STAGE_REFUSED', count: 2 }])
      expect(stages.find(({ name }) => name === 'maintenance')).toMatchObject({ shadow: true })
    }
  })
})

describe('custom stage in reports', () => {
  const options = (): GuardOptions => ({
    shed: { maxQueue: 10 },
    userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
    stages: [createSwitch().stage],
  })

  it('a custom stage appears in the snapshot at its position, with its own state', () => {
    const { stages } = createGuardPod(options()).guard.snapshot()
    expect(stages.map(({ name }) => name)).toEqual(['shed', 'maintenance', 'user-limit', 'call'])
    expect(stages[1]).toEqual({
      name: 'maintenance',
      scope: 'local',
      per: 'call',
      shadow: false,
      custom: true,
      state: { on: true },
    })
  })

  it('refusals of a custom stage are counted in metrics under its name', async () => {
    const { clock, spillway, quick } = createGuardPod(options())
    quick()
    await clock.advance(10)
    const metrics = new Map<string, () => Promise<{ values: Sample[] }>>()
    const registerMetric = ({ name, get }: { name: string; get: never }) => metrics.set(name, get)
    exposeToPrometheus({ spillway, registry: { registerMetric: registerMetric as never } })
    const read = metrics.get('spillway_refused_total') as () => Promise<{ values: Sample[] }>
    const { values } = await clock.until(read())
    expect(values).toEqual([
      {
        labels: { guard: 'openai', stage: 'maintenance', code: 'STAGE_REFUSED' },
        value: 1,
      },
    ])
  })

  it('the dashboard gets the rows of a guard with custom stages, in order', () => {
    const card = guardCard('openai', checkGuard('openai', options()))
    expect(card.on).toEqual(['shed', 'maintenance', 'user-limit', 'call'])
    expect(card.stages?.slice(0, 3)).toMatchObject([
      { stage: 'shed' },
      { stage: 'maintenance', option: 'stages', codes: ['STAGE_REFUSED'], shadow: true },
      { stage: 'user-limit' },
    ])
    expect(guardCard('plain', checkGuard('plain', {})).stages).toBeUndefined()
  })
})

describe('custom stage of attempts', () => {
  it('a stage after the queue is checked again for a retry, and a refusal ends the call', async () => {
    const { state, stage } = createSwitch({ name: 'switch', after: 'breaker' })
    state.on = false
    const { clock, run } = createGuardPod({
      retry: { attempts: 3, baseMs: 100, jitter: 'none', budget: 1 },
      stages: [stage],
    })
    const call = run(() => Promise.reject(vendorError(503)))
    await clock.advance(10)
    state.on = true
    await clock.until(call.promise)
    expect(fateOf(call)).toBe('STAGE_REFUSED')
    expect(state.seen.map(({ kind, attempt }) => [kind, attempt])).toEqual([
      ['call', 1],
      ['retry', 2],
    ])
  })

  it('a stage before the queue is not checked again for a retry', async () => {
    const { state, stage } = createSwitch()
    state.on = false
    const { clock, run } = createGuardPod({
      retry: { attempts: 2, baseMs: 100, budget: 1 },
      stages: [stage],
    })
    const call = run(() => Promise.reject(vendorError(503)))
    await clock.until(call.promise)
    expect(state.seen).toHaveLength(1)
  })

  it('a hedge is not begun if a custom stage refuses it', async () => {
    const kinds: string[] = []
    const stage = customStage({
      name: 'no-hedges',
      before: 'call',
      check({ kind }) {
        kinds.push(kind)
        return kind === 'hedge' ? { refuse: 'one attempt is enough' } : undefined
      },
    })
    const { clock, run, guard } = createGuardPod({ hedge: { delayMs: 50 }, stages: [stage] })
    const job = createJob()
    const call = run(job.fn)
    await clock.advance(200)
    expect(kinds).toEqual(['call', 'hedge'])
    expect(guard.snapshot().hedges?.made).toBe(0)
    job.finish()
    await clock.until(call.promise)
    expect(fateOf(call)).toBe('resolved')
  })

  it.each([
    ['the hedge', 500, 10],
    ['the first attempt', 100, 500],
  ])('a call is released as a success when %s answers first', async (_, firstMs, hedgeMs) => {
    const ends: unknown[] = []
    const stage = customStage<number>({
      name: 'budget',
      after: 'shed',
      acquire: () => 1,
      release: (_grant, { ran, outcome }) => void ends.push({ ran, outcome }),
    })
    const { clock, run, guard } = createGuardPod({ hedge: { delayMs: 50 }, stages: [stage] })
    const call = run(({ signal, hedge }) => sleep(clock, hedge ? hedgeMs : firstMs, signal))
    await clock.advance(1_000)
    expect(fateOf(call)).toBe('resolved')
    expect(guard.snapshot()).toMatchObject({ attempts: 2, outcomes: { success: 1, ignored: 1 } })
    expect(ends).toEqual([{ ran: true, outcome: 'success' }])
  })

  it('what a stage acquires is released once, with the outcome, also after a refusal', async () => {
    const ends: unknown[] = []
    let next = 0
    const stage = customStage<number>({
      name: 'budget',
      after: 'concurrency',
      acquire: () => ++next,
      release: (grant, end) => void ends.push([grant, end.ran, end.outcome]),
    })
    const last = customStage({
      name: 'last',
      after: 'budget',
      acquire: ({ user }) => (user === 'ben' ? { refuse: 'not today', status: 403 } : undefined),
    })
    const { clock, run, quick, guard } = createGuardPod({
      concurrency: { limit: 1 },
      stages: [stage, last],
    })
    const fine = quick({ user: 'ann' })
    await clock.until(fine.promise)
    const failing = run(() => Promise.reject(vendorError(500)))
    await clock.until(failing.promise)
    const refused = quick({ user: 'ben' })
    await clock.until(refused.promise)
    expect(refused.error).toMatchObject({ code: 'STAGE_REFUSED', stage: 'last', status: 403 })
    expect(ends).toEqual([
      [1, true, 'success'],
      [2, true, 'failure'],
      [3, false, undefined],
    ])
    expect(guard.snapshot().active).toBe(0)
    const after = quick()
    await clock.until(after.promise)
    expect(fateOf(after)).toBe('resolved')
  })

  it('a stage of the call keeps its grant over retries and until a streamed body has ended', async () => {
    const ends: unknown[] = []
    const stage = customStage({
      name: 'session',
      after: 'shed',
      acquire: () => 'held',
      release: (_, end) => void ends.push(end),
    })
    const { clock, run, guard } = createGuardPod({
      retry: { attempts: 2, baseMs: 10, budget: 1 },
      stages: [stage],
    })
    let attempts = 0
    let push: ReadableStreamDefaultController<Uint8Array> | undefined
    const call = run(() => {
      if (++attempts === 1) throw vendorError(503)
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          push = controller
        },
      })
      return new Response(body)
    })
    await clock.until(call.promise)
    expect(attempts).toBe(2)
    expect(ends).toEqual([])
    expect(guard.snapshot().active).toBe(1)
    const text = (call.value as Response).text()
    push?.enqueue(new TextEncoder().encode('hello'))
    push?.close()
    expect(await text).toBe('hello')
    await clock.advance(10)
    expect(ends).toEqual([{ ran: true, outcome: 'success' }])
  })

  it('what a stage of the call acquired is released if a later stage refuses the call', async () => {
    const ends: unknown[] = []
    const stage = customStage({
      name: 'session',
      after: 'shed',
      acquire: () => 'held',
      release: (_, end) => void ends.push(end),
    })
    const { clock, quick } = createGuardPod({
      userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
      stages: [stage],
    })
    const calls = [quick({ user: 'ann' }), quick({ user: 'ann' })]
    await clock.advance(10)
    expect(calls.map(fateOf)).toEqual(['resolved', 'USER_LIMITED'])
    expect(ends).toContainEqual({ ran: false, outcome: undefined })
    expect(ends).toHaveLength(2)
  })
})

describe('custom stage and jobs', () => {
  it('jobs wait while a custom stage refuses all of them, and run afterwards', async () => {
    const { state, stage } = createSwitch()
    const { clock, spillway } = createGuardPod({ stages: [stage] })
    const queue = spillway.jobQueue<number, number>('reports', { guard: 'openai' })
    const done: number[] = []
    queue.work(({ data }) => done.push(data))
    await clock.until(queue.add(1))
    await clock.advance(30_000)
    expect(done).toEqual([])
    expect(queue.snapshot()).toMatchObject({ taken: 0 })
    state.on = false
    await clock.advance(2_000)
    expect(done).toEqual([1])
    await clock.until(spillway.close())
  })

  it('a job of a tenant that a custom stage refuses goes back to its queue', async () => {
    const off = new Set(['acme'])
    const stage = customStage({
      name: 'kill-switch',
      after: 'shed',
      check: ({ tenant = '' }) =>
        off.has(tenant) ? { refuse: `${tenant} is switched off`, retryAfterMs: 5_000 } : undefined,
    })
    const { clock, spillway } = createGuardPod({ stages: [stage] })
    const queue = spillway.jobQueue<string, number>('reports', { guard: 'openai' })
    const done: string[] = []
    queue.work(({ data }) => done.push(data))
    await clock.until(queue.add('theirs', { tenant: 'acme' }))
    await clock.until(queue.add('ours', { tenant: 'us' }))
    await clock.advance(1_000)
    expect(done).toEqual(['ours'])
    off.clear()
    await clock.advance(6_000)
    expect(done).toEqual(['ours', 'theirs'])
    await clock.until(spillway.close())
  })
})

describe('custom stage that fails', () => {
  const failing = (onError?: 'allow' | 'refuse') =>
    customStage({
      name: 'buggy',
      after: 'shed',
      check() {
        throw new Error('oops')
      },
      ...(onError !== undefined && { onError }),
    })

  it.each([
    [undefined, 'resolved'],
    ['allow', 'resolved'],
    ['refuse', 'STAGE_REFUSED'],
  ] as const)(
    'an exception in a stage with onError %s is an event, and the call is %s',
    async (onError, fate) => {
      const { clock, quick } = createGuardPod({ stages: [failing(onError)] })
      let call: ReturnType<typeof quick> | undefined
      const events = eventsOf(() => {
        call = quick()
      })
      await clock.advance(10)
      expect(call && fateOf(call)).toBe(fate)
      expect(events).toContainEqual(
        expect.objectContaining({
          type: 'callback.failed',
          name: 'openai',
          callback: 'stage buggy.check',
        }),
      )
    },
  )

  it.each([
    ['a promise', async () => undefined],
    ['a status outside 400 to 599', () => ({ refuse: 'no', status: 200 })],
    ['a negative wait', () => ({ refuse: 'no', retryAfterMs: -1 })],
    ['a reason that is no text', () => ({ refuse: true })],
  ])('a check that returns %s counts as failed', async (_, check) => {
    const stage = customStage({ name: 'wrong', after: 'shed', check: check as never })
    const { clock, quick } = createGuardPod({ stages: [stage] })
    let call: ReturnType<typeof quick> | undefined
    const events = eventsOf(() => {
      call = quick()
    })
    await clock.advance(10)
    expect(call && fateOf(call)).toBe('resolved')
    expect(events.map(({ type }) => type)).toContain('callback.failed')
  })

  it('an exception in release or snapshot is an event and changes nothing', async () => {
    const stage = customStage({
      name: 'careless',
      after: 'shed',
      acquire: () => 1,
      release() {
        throw new Error('oops')
      },
      snapshot() {
        throw new Error('oops')
      },
    })
    const { clock, quick, guard } = createGuardPod({ stages: [stage] })
    const events: string[] = []
    const stop = onEvent((event) => {
      if (event.type === 'callback.failed') events.push(event.callback)
    })
    const call = quick()
    await clock.until(call.promise)
    expect(fateOf(call)).toBe('resolved')
    expect(guard.snapshot().stages[0]).toMatchObject({ name: 'careless', state: undefined })
    stop()
    expect(events).toEqual(['stage careless.release', 'stage careless.snapshot'])
  })
})

describe('options of custom stages', () => {
  const check = () => undefined

  it.each<[object, string]>([
    [{ name: 'Big', after: 'shed', check }, 'customStage(Big).name: must match [a-z]'],
    [{ name: 'a'.repeat(41), after: 'shed', check }, '.name: must match'],
    [{ name: 'a', check }, 'customStage(a): needs exactly one of after and before'],
    [{ name: 'a', after: 'shed', before: 'queue', check }, 'needs exactly one of'],
    [{ name: 'a', after: 'shed' }, 'customStage(a): needs check, acquire or both'],
    [{ name: 'a', after: 'shed', chekc: check }, "unknown option; did you mean 'check'?"],
    [{ name: 'a', after: 'shed', check, release: check }, 'release: needs acquire'],
    [{ name: 'a', after: 'shed', check, per: 'request' }, "per: must be one of 'call', 'attempt'"],
  ])('custom stage options %j are rejected', (options, message) => {
    expect(() => customStage(options as never)).toThrow(message)
    expect(() => customStage(options as never)).toThrow(OptionsError)
  })

  it.each<[unknown, string]>([
    [[{ name: 'a' }], 'guard(g).stages[0]: must be what customStage() returns'],
    [[customStage({ name: 'breaker', after: 'shed', check })], "the name 'breaker' is taken"],
    [
      [customStage({ name: 'a', after: 'shedd', check })],
      "guard(g).stages[0]: there is no stage 'shedd'; did you mean 'shed'?",
    ],
    [
      [customStage({ name: 'a', before: 'room', check })],
      "guard(g).stages[0]: there is no stage 'room' any more; use 'queue'",
    ],
    [[customStage({ name: 'a', after: 'retry', check })], "'retry' does not come before the call"],
    [
      [1, 2].map(() => customStage({ name: 'a', after: 'shed', check })),
      "guard(g).stages[1]: the name 'a' is taken",
    ],
  ])('guard option stages is rejected: case %#', (stages, message) => {
    expect(() => createSpillway().guard('g', { stages } as never)).toThrow(message)
  })

  it('an unknown name in shadow is rejected, and that of a custom stage is not', () => {
    const stages = [customStage({ name: 'a', after: 'shed', check })]
    const spillway = createSpillway()
    expect(() => spillway.guard('g', { stages, shadow: ['b'] })).toThrow('guard(g).shadow[0]')
    expect(() => spillway.guard('g', { stages, shadow: ['a'] })).not.toThrow()
  })

  it('custom stages after the same stage keep the order in which they are listed', () => {
    const stages = ['first', 'second', 'third'].map((name) =>
      customStage({ name, after: name === 'third' ? 'second' : 'shed', check }),
    )
    const { guard } = createGuardPod({ shed: { maxQueue: 1 }, stages })
    expect(guard.snapshot().stages.map(({ name }) => name)).toEqual([
      'shed',
      'first',
      'second',
      'third',
      'call',
    ])
  })
})
