/** Stages in shadow mode decide as usual, report refusals and let every call pass. */
import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../src/core/events.js'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { ShadowStage } from '../src/guard/pipeline/stages.js'
import { createSpillway } from '../src/index.js'
import {
  countFates,
  createGuardPod,
  createJob,
  EVERYWHERE,
  vendorError,
  type Where,
} from './guard-pod.js'

const BREAKER = {
  consecutiveFailures: 2,
  openMs: '60s',
  probes: 1,
  successes: 1,
  rampMs: 0,
} as const

/** Refusals of each stage for five concurrent calls after two failed ones. */
const STAGES: [ShadowStage, GuardOptions, code: string, refused: number][] = [
  ['shed', { shed: { when: ({ user }) => user === 'u3' } }, 'SHED', 1],
  ['user-limit', { userLimits: [{ per: 'tier', limit: 4, windowMs: '1h' }] }, 'USER_LIMITED', 3],
  ['breaker', { breaker: BREAKER }, 'CIRCUIT_OPEN', 5],
  ['vendor-limit', { limits: [{ limit: 4, windowMs: '1h' }] }, 'VENDOR_LIMITED', 3],
  ['pace', { pace: { limit: 4, windowMs: '1h' } }, 'QUEUE_FULL', 3],
  ['concurrency', { concurrency: { limit: 2 } }, 'QUEUE_FULL', 3],
]

async function callSeven(options: GuardOptions, where: Where) {
  const { clock, run, guard } = createGuardPod(options, { where })
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => events.push(event))
  const reported: string[] = []
  // Connected and with one heartbeat received.
  await clock.advance(1_500)
  for (let i = 0; i < 2; i++) {
    run(
      () => {
        throw vendorError(500)
      },
      { tier: 'free' },
    )
    await clock.advance(10)
  }
  const job = createJob()
  const calls = Array.from({ length: 5 }, (_, index) =>
    run(job.fn, {
      user: `u${index}`,
      tier: 'free',
      onShadow: ({ stage, code }) => reported.push(`${stage} ${code}`),
    }),
  )
  await clock.advance(100)
  job.finish()
  await clock.advance(100)
  stop()
  return { fates: countFates(calls), snapshot: guard.snapshot(), reported, events }
}

describe.each(EVERYWHERE)('stage in shadow mode, store: %s', (where) => {
  it.each(STAGES)(
    '%s in shadow mode refuses no call and reports every refusal it would make',
    async (stage, options, code, refused) => {
      const strict = await callSeven(options, where)
      expect(strict.fates).toEqual({
        ...(refused < 5 && { resolved: 5 - refused }),
        [code]: refused,
      })
      expect(strict.snapshot.wouldHaveRefused).toEqual([])

      const { fates, snapshot, reported, events } = await callSeven(
        { ...options, shadow: [stage] },
        where,
      )
      expect(fates).toEqual({ resolved: 5 })
      expect(snapshot.refused).toEqual([])
      expect(snapshot.wouldHaveRefused).toEqual([{ stage, code, count: refused }])
      expect(reported).toEqual(Array(refused).fill(`${stage} ${code}`))
      const would = events.filter(({ type }) => type === 'guard.would-have-refused')
      expect(would).toHaveLength(refused)
      expect(would[0]).toMatchObject({ stage, code, lane: 'default', details: { name: 'openai' } })
    },
  )

  it('shadow mode waits for neither an unreachable store nor a paused lane', async () => {
    const { clock, run, quick, connection } = createGuardPod(
      { limits: [{ limit: 5, windowMs: '1h' }], queue: { size: 5 }, shadow: true },
      { where },
    )
    await clock.advance(1_500)
    run(() => {
      throw vendorError(429, { 'retry-after': '60' })
    })
    await clock.advance(100)
    connection?.goDown()
    const calls = Array.from({ length: 20 }, () => quick())
    await clock.settle()
    expect(countFates(calls)).toEqual({ resolved: 20 })
    await clock.advance(1_000)
  })

  it('shadow mode without limits does not pause a lane after a 429', async () => {
    const { clock, run, quick } = createGuardPod({ queue: { size: 5 }, shadow: true }, { where })
    await clock.advance(1_500)
    run(() => {
      throw vendorError(429, { 'retry-after': '60' })
    })
    await clock.advance(100)
    const calls = Array.from({ length: 20 }, () => quick())
    await clock.settle()
    expect(countFates(calls)).toEqual({ resolved: 20 })
  })

  it('shadow mode settles costs as usual', async () => {
    const { clock, run, used, guard } = createGuardPod(
      { limits: [{ unit: 'tokens', limit: 100, windowMs: '1h' }], shadow: ['vendor-limit'] },
      { where },
    )
    await clock.advance(1_500)
    run(
      async ({ settle }) => {
        await sleep(clock, 50)
        settle({ tokens: 30 })
      },
      { cost: { tokens: 90 } },
    )
    await clock.advance(1_000)
    expect(await used()).toBe(30)
    expect(guard.snapshot().wouldHaveRefused).toEqual([])
  })

  it('stages that are not in shadow mode still refuse', async () => {
    const { clock, quick } = createGuardPod(
      {
        userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
        limits: [{ limit: 1, windowMs: '1h' }],
        shadow: ['vendor-limit'],
      },
      { where },
    )
    await clock.advance(1_500)
    const calls = ['ann', 'ben', 'ann'].map((user) => quick({ user }))
    await clock.advance(100)
    expect(countFates(calls)).toEqual({ resolved: 2, USER_LIMITED: 1 })
  })
})

describe('shadow options', () => {
  it.each<[object, string]>([
    [{ shadow: false }, 'guard(a).shadow: must be true, or a list of stages: shed, user-limit'],
    [{ shadow: ['queue'] }, 'guard(a).shadow[0]: must be one of'],
    [{ shadow: ['pace'] }, "guard(a).shadow[0]: has no effect without the option 'pace'"],
    [
      { concurrency: { adaptive: 'aimd' }, shadow: true },
      'guard(a).concurrency.adaptive: cannot be in shadow',
    ],
  ])('shadow options %j are rejected', (options, message) => {
    expect(() => createSpillway().guard('a', options)).toThrow(message)
  })
})
