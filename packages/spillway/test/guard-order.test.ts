/**
 * The order of the stage table decides which refusal a call gets: of two obstacles the earlier row is reported,
 * and swapping two rows changes the answer.
 */
import { describe, expect, it } from 'vitest'
import { SpillwayError, type Stage } from '../src/core/errors.js'
import { createRandom } from '../src/core/random.js'
import { SharedGuard } from '../src/guard/guard.js'
import { checkGuard, type GuardOptions } from '../src/guard/options.js'
import { STAGES, type StageDefinition } from '../src/guard/pipeline/stages.js'
import { customStage } from '../src/guard/stages/custom.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock, type VirtualClock } from '../src/testing/virtual-clock.js'
import { createJob, vendorError, watch } from './guard-pod.js'

interface Scene {
  clock: VirtualClock
  guard: SharedGuard
  switches: { shed: boolean; custom: boolean }
}

interface Obstacle {
  options: GuardOptions
  /** Makes the stage refuse the next call. */
  begin(scene: Scene): Promise<void> | void
  /** Order in which obstacles are set up: some need calls that succeed, others prevent them. */
  turn: number
}

const LIMIT_WAIT = { limit: 1, windowMs: '1h' } as const

/** One obstacle for each stage that can refuse a call before it starts, in no particular order. */
function obstaclesOf(switches: Scene['switches']): Partial<Record<Stage, Obstacle>> {
  const calls = async ({ clock, guard }: Scene, fn: () => unknown, count = 1) => {
    for (let i = 0; i < count; i++) await clock.until(watch(clock, guard.run(fn)).promise)
  }
  return {
    shed: {
      options: { shed: { when: () => switches.shed } },
      turn: 5,
      begin() {
        switches.shed = true
      },
    },
    gate: {
      options: {
        stages: [
          customStage({
            name: 'gate',
            after: 'shed',
            check: () => (switches.custom ? { refuse: 'closed' } : undefined),
          }),
        ],
      },
      turn: 5,
      begin() {
        switches.custom = true
      },
    },
    breaker: {
      options: { breaker: { consecutiveFailures: 100, openMs: '1h' } },
      turn: 4,
      begin: async ({ clock, guard }) => {
        await clock.until(guard.breaker?.trip() ?? Promise.resolve())
        await clock.advance(10)
      },
    },
    throttle: {
      options: { throttle: { k: 1, minimumCalls: 1, windowMs: '1h' } },
      turn: 1,
      begin: (scene) => calls(scene, () => Promise.reject(vendorError(500))),
    },
    'vendor-limit': {
      options: { limits: [{ limit: 100, windowMs: '1h' }], basePauseMs: '1h', maxPauseMs: '2h' },
      turn: 2,
      begin: async ({ clock, guard }) => {
        // A pod knows the pause of a lane without a round trip.
        guard.parts.queue.dispatcher.pauseUntil('default', clock.now() + 3_600_000)
      },
    },
    pace: {
      options: { pace: { limit: 1, windowMs: '1h', burst: 2 } },
      turn: 0,
      begin: (scene) => calls(scene, () => 'spent'),
    },
    concurrency: {
      options: { concurrency: { limit: 1 } },
      turn: 3,
      begin: async ({ guard, clock }) => {
        // Taken directly: other obstacles would keep a call from starting.
        guard.parts.slots.reserve(1, 'default')
        await clock.settle()
      },
    },
  }
}

const REFUSING = [
  'shed',
  'gate',
  'breaker',
  'throttle',
  'vendor-limit',
  'pace',
  'concurrency',
] as const

async function refusedBy(
  stages: readonly Stage[],
  table: readonly StageDefinition[] = STAGES,
): Promise<Stage | undefined> {
  const switches = { shed: false, custom: false }
  const all = obstaclesOf(switches)
  const obstacles = stages.map((stage) => all[stage] as Obstacle)
  const options = Object.assign({}, ...obstacles.map((each) => each.options)) as GuardOptions
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  const guard = new SharedGuard(
    'openai',
    checkGuard('openai', options),
    {
      store,
      sameClock: false,
      pod: 'pod',
      clock,
      // The throttle refuses whenever it refuses any share of the calls.
      random: stages.includes('throttle') ? () => 0 : createRandom(1),
      expectedPods: 1,
      tracer: undefined,
    },
    undefined,
    table,
  )
  const scene = { clock, guard, switches }
  // One start is spent before the second obstacle, and the pace has two.
  if (stages.includes('pace') && !stages.includes('throttle')) {
    await clock.until(
      watch(
        clock,
        guard.run(() => 'spent'),
      ).promise,
    )
  }
  for (const { begin } of [...obstacles].sort((one, other) => one.turn - other.turn)) {
    await begin(scene)
  }
  const call = watch(
    clock,
    guard.run(() => 'ran'),
  )
  await clock.until(call.promise)
  return call.error instanceof SpillwayError ? call.error.stage : undefined
}

const PAIRS = REFUSING.flatMap((one, index) =>
  REFUSING.slice(index + 1).map((other) => [one, other] as const),
)

function swapped(one: Stage, other: Stage): readonly StageDefinition[] {
  const rows: StageDefinition[] = [...STAGES]
  const [first, second] = [one, other].map((name) => rows.findIndex(({ stage }) => stage === name))
  const [a, b] = [rows[first as number], rows[second as number]]
  rows[first as number] = b as StageDefinition
  rows[second as number] = a as StageDefinition
  return rows
}

describe('order of the stage table', () => {
  it.each(REFUSING)('%s refuses a call when it is the only obstacle', async (stage) => {
    expect(await refusedBy([stage])).toBe(stage)
  })

  it.each(PAIRS)(
    'a call with the obstacles %s and %s is refused by the first',
    async (one, other) => {
      expect(await refusedBy([one, other])).toBe(one)
    },
  )

  it.each(PAIRS.filter(([one, other]) => one !== 'gate' && other !== 'gate'))(
    'with the rows %s and %s swapped the other one is reported',
    async (one, other) => {
      expect(await refusedBy([one, other], swapped(one, other))).toBe(other)
    },
  )

  it('the queue refuses before the breaker, and after it if their rows are swapped', async () => {
    const refusing = async (table?: readonly StageDefinition[]) => {
      const clock = createVirtualClock()
      const options: GuardOptions = {
        queue: { size: 1, timeoutMs: '1m' },
        concurrency: { limit: 1 },
        breaker: { consecutiveFailures: 100, openMs: '1h' },
      }
      const store = memoryStore({ clock })
      const around = { store, sameClock: false, pod: 'pod', clock, expectedPods: 1 }
      const guard = new SharedGuard(
        'openai',
        checkGuard('openai', options),
        { ...around, random: createRandom(1), tracer: undefined },
        undefined,
        table,
      )
      const job = createJob()
      watch(clock, guard.run(job.fn, { lane: 'busy' }))
      watch(clock, guard.run(job.fn, { lane: 'busy' }))
      watch(
        clock,
        guard.run(() => 'creates the lane', { lane: 'broken' }),
      )
      await clock.until(guard.breaker?.trip({ lane: 'broken' }) ?? Promise.resolve())
      await clock.advance(10)
      expect(guard.snapshot().queue.waiting).toBe(1)
      const call = watch(
        clock,
        guard.run(() => 'ran', { lane: 'broken' }),
      )
      await clock.until(call.promise)
      return call.error instanceof SpillwayError ? call.error.stage : undefined
    }
    expect(await refusing()).toBe('queue')
    expect(await refusing(swapped('queue', 'breaker'))).toBe('breaker')
  })

  it('a refusal that a pod knows by itself comes before the user limit is charged', async () => {
    for (const stage of REFUSING) {
      const switches = { shed: false, custom: false }
      const obstacle = obstaclesOf(switches)[stage] as Obstacle
      const clock = createVirtualClock()
      const guard = new SharedGuard(
        'openai',
        checkGuard('openai', {
          ...obstacle.options,
          userLimits: [{ per: 'user', ...LIMIT_WAIT }],
        }),
        {
          store: memoryStore({ clock }),
          sameClock: false,
          pod: 'pod',
          clock,
          random: () => 0,
          expectedPods: 1,
          tracer: undefined,
        },
      )
      if (stage === 'pace')
        await clock.until(
          watch(
            clock,
            guard.run(() => 'spent'),
          ).promise,
        )
      await clock.until(
        watch(
          clock,
          guard.run(() => 'counted', { user: 'ann' }),
        ).promise,
      )
      await obstacle.begin({ clock, guard, switches })
      const call = watch(
        clock,
        guard.run(() => 'ran', { user: 'ann' }),
      )
      await clock.until(call.promise)
      expect(call.error).toMatchObject({ stage })
    }
  })
})
