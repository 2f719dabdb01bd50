import { describe, expect, it } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { SpillwayError } from '../../core/errors.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { BreakerPermit } from '../circuit-breaker/api.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import type { LanePermit, LimitReply } from '../rate-limiter/permit.js'
import { CallQueue } from './call-queue.js'
import { ImmediatePermits, type ImmediatePermitsOptions } from './immediate-permits.js'
import { LaneBlocks } from './lane-block.js'
import type { LimitPort } from './ports.js'

const refusal = () =>
  new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage: 'vendor-limit',
    scope: 'shared',
    explain: () => 'no store',
  })
const CALL = { cost: undefined, costs: [5], costsUnder: undefined }
const ENTERED = { probe: false } as BreakerPermit

function setup({
  remote = false,
  limited = true,
  ...options
}: Partial<ImmediatePermitsOptions> & { remote?: boolean; limited?: boolean } = {}) {
  const clock = createVirtualClock()
  const queue = new CallQueue({ clock, size: 9, timeoutMs: 5_000, targetMs: 1e9, agingMs: 1e9 })
  const state = {
    ...{ free: 1, clear: true, created: 0, started: [] as string[], taken: [] as unknown[][] },
    reply: { granted: 1, waitUs: 0, paused: false } as LimitReply | Error,
  }
  const limits: LimitPort = {
    remote,
    useWithinMs: 100,
    settings: { of: () => ({ costsOf: ({ costs }) => costs }) },
    take(...args) {
      state.taken.push(args)
      if (state.reply instanceof Error) throw state.reply
      return state.reply
    },
    createPermit: (lane) => ({ lane, created: ++state.created }) as unknown as LanePermit,
    pausedMs: async () => 0,
  }
  const all: ImmediatePermitsOptions = {
    queue,
    capacity: {
      full: false,
      free: () => state.free,
      paceWaitMs: () => 0,
      reserve: () => {},
      giveUp: () => {},
      admit: () => {},
      start: (lane) => void state.started.push(lane),
    },
    breaker: { isClear: () => state.clear, enter: () => ENTERED, exit: () => {} },
    limits: limited ? limits : undefined,
    mayWait: true,
    storeError: refusal,
    ...options,
  }
  const blocks = new LaneBlocks({
    ...{ clock, queue, limits: all.limits, mayWait: true },
    lanes: new LaneRegistry({ name: 'vendor', clock }),
    limitedError: refusal,
    onUnblocked: () => {},
  })
  return { clock, queue, state, blocks, immediate: new ImmediatePermits(all, blocks) }
}

describe('permits without a wait', () => {
  it('a call gets its slot, its breaker permit and, when read, its permit of the limits', () => {
    const { immediate, state } = setup()
    const permits = immediate.take('a', CALL, 0)
    expect(state.started).toEqual(['a'])
    expect([permits?.breaker, state.created]).toEqual([ENTERED, 0])
    expect(permits?.permit).toEqual({ lane: 'a', created: 1 })
    expect(permits?.permit).toBe(permits?.permit)
    expect(state.created).toBe(1)
  })

  it('without limits a call gets a slot and its breaker permit', () => {
    const { immediate, state } = setup({ limited: false })
    expect(immediate.take('a', CALL, 0)).toEqual({ breaker: ENTERED, permit: undefined })
    expect(state.started).toEqual(['a'])
  })

  it('without a breaker a call gets the permit of its limits', () => {
    const { immediate } = setup({ breaker: undefined })
    const permits = immediate.take('a', CALL, 0)
    expect(permits?.breaker).toBeUndefined()
    expect(permits?.permit).toMatchObject({ lane: 'a' })
  })

  it.each<[string, (pod: ReturnType<typeof setup>) => void]>([
    [
      'a call waits in another lane',
      ({ queue }) => {
        queue.join(new TestCall({ lane: 'b', arrivedMs: 0 }), 0, 0)
      },
    ],
    [
      'the breaker is not clear',
      ({ state }) => {
        state.clear = false
      },
    ],
    [
      'no slot is free',
      ({ state }) => {
        state.free = 0
      },
    ],
    ['the lane is paused', ({ blocks }) => blocks.pauseLane('a', 100)],
  ])('a call takes nothing while %s', (_, prepare) => {
    const pod = setup()
    prepare(pod)
    expect(pod.immediate.take('a', CALL, 0)).toBeUndefined()
    expect([pod.state.taken, pod.state.started]).toEqual([[], []])
  })

  it('a remote store is not asked for an immediate permit', () => {
    const { immediate, state } = setup({ remote: true })
    expect(immediate.take('a', CALL, 0)).toBeUndefined()
    expect(state.taken).toEqual([])
  })

  it('the store learns the costs, the time if it shares the clock, and how long the call can wait', () => {
    const { immediate, state } = setup({ sameClock: true })
    immediate.take('a', { ...CALL, deadlineMs: 1_000 }, 300)
    immediate.take('a', { ...CALL, deadlineMs: 9_000 }, 300)
    immediate.take('a', { ...CALL, deadlineMs: 200 }, 300)
    immediate.take('a', CALL, 300)
    expect(state.taken).toEqual([
      ['a', [[5]], 300, 700],
      ['a', [[5]], 300, 5_000],
      ['a', [[5]], 300, 0],
      ['a', [[5]], 300, 0],
    ])
    const hasty = setup({ mayWait: false })
    hasty.immediate.take('a', { ...CALL, deadlineMs: 1_000 }, 300)
    expect(hasty.state.taken).toEqual([['a', [[5]], undefined, 0]])
  })

  it('a refusal blocks the lane for the time that the store names, and starts nothing', () => {
    const { immediate, state, blocks } = setup()
    state.reply = { granted: 0, waitUs: 40_000, paused: false } as LimitReply
    expect(immediate.take('a', CALL, 0)).toBeUndefined()
    expect([blocks.waitMs('a', 0), blocks.of('a').blockedCosts]).toEqual([40, [5]])
    expect([state.started, blocks.of('a').blocker]).toEqual([[], undefined])
  })

  it('an error of the store becomes its refusal', () => {
    const { immediate, state } = setup()
    state.reply = new Error('full disk')
    expect(() => immediate.take('a', CALL, 0)).toThrow('no store')
    expect(state.started).toEqual([])
  })
})
