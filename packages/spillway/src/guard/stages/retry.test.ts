import { describe, expect, it } from 'vitest'
import type { BreakerLanes } from '../../shared/circuit-breaker/breaker-lanes.js'
import { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { StageAttempt } from '../pipeline/stage.js'
import { type RetriedCall, type RetryOption, RetryStage, type RetryStageOptions } from './retry.js'

const RETRY: RetryOption = {
  ...{ attempts: 3, budget: 0.5, backoff: 'constant', baseMs: 10, maxMs: 10, jitter: 'none' },
  ...{ maxRetryAfterMs: 1_000, maxQueueWaitMs: 2_000, where: 'anywhere' },
}
const CALL: RetriedCall = { lane: 'a', unfinished: undefined }
const nothing = () => undefined

/** A stage without the option `retry`, if `options` does not contain it. */
function createStage(options: Partial<RetryStageOptions>) {
  const clock = createVirtualClock()
  const lanes = new LaneRegistry({ name: 'vendor', clock })
  const stage = new RetryStage({
    ...{ guard: 'vendor', retry: undefined, hedges: false, retriedHeader: undefined, clock },
    ...{ random: () => 0.5, breaker: undefined, classify: undefined, lanes },
    ...{ conditions: () => ({}), ...options },
  })
  const conditions = () => stage.optionsFor({}, CALL, nothing).conditions?.()
  return { clock, stage, conditions }
}

const setup = (options: Partial<RetryStageOptions> = {}, retry: Partial<RetryOption> = {}) =>
  createStage({ retry: { ...RETRY, ...retry }, ...options })

describe('which calls a guard retries', () => {
  it('first attempts of the caller are retried, and retries of the caller are not', () => {
    const { stage } = setup()
    expect(stage.policyFor({})).toBe(stage.policy)
    expect(stage.policyFor({ callerAttempt: 1 })).toBe(stage.policy)
    expect(stage.policyFor({ callerAttempt: 2 }).attempts).toBe(1)
  })

  it('a guard that retries only at the edge does not retry calls of other services', () => {
    const { stage } = setup({}, { where: 'edge' })
    expect(stage.policyFor({})).toBe(stage.policy)
    expect(stage.policyFor({ callerAttempt: 1 }).attempts).toBe(1)
  })

  it('a guard without retries makes one attempt and has no budget', () => {
    const { stage } = createStage({})
    expect(stage.policyFor({})).toMatchObject({ attempts: 1, name: 'vendor', usualMs: 0 })
    expect([stage.policy, stage.budget, stage.release]).toEqual([undefined, undefined, undefined])
  })

  it('the stage is listed as a local one of a call', () => {
    const { name, scope, per } = createStage({}).stage
    expect({ name, scope, per }).toEqual({ name: 'retry', scope: 'local', per: 'call' })
  })

  it.each([
    ['the retried header', { 'x-retried': '1' }, true],
    ['the header of vendors', { 'x-should-retry': 'false' }, true],
    ['a vendor that asks for a retry', { 'x-should-retry': 'true' }, false],
    ['neither header', {}, false],
  ])('a response with %s was retried below: %s', (_, headers, retried) => {
    const { stage } = setup({ retriedHeader: 'x-retried' })
    expect(stage.policy?.retriedBelow?.(new Response('', { headers }))).toBe(retried)
    expect(stage.policy?.retriedBelow?.('no response')).toBe(false)
  })

  it('without a name for the header no response was retried below', () => {
    expect(setup().stage.policy).not.toHaveProperty('retriedBelow')
  })

  it('signal and idempotency of the call are passed on, if it has them', () => {
    const { stage } = setup()
    const { signal } = new AbortController()
    const given = { signal, idempotent: false, idempotencyKey: 'k' }
    expect(stage.optionsFor(given, CALL, nothing)).toMatchObject(given)
    expect(Object.keys(stage.optionsFor({}, CALL, nothing))).toEqual(['judged', 'conditions'])
  })
})

describe('budget of the retry stage', () => {
  it('a call gets one retry less than attempts, and a hedge counts as one', () => {
    expect(setup().stage.budget?.allowedRetries()).toBe(2)
    expect(setup({}, { attempts: 1 }).stage.budget?.allowedRetries()).toBe(0)
    expect(setup({ hedges: true }, { attempts: 1 }).stage.budget?.allowedRetries()).toBe(1)
    expect(createStage({ hedges: true }).stage.budget?.allowedRetries()).toBe(1)
  })

  it('the budget follows the load of the pod', () => {
    const { stage } = setup({ conditions: () => ({ queueWaitMs: 2_001 }) })
    expect(stage.budget?.allowedRetries()).toBe(0)
  })
})

describe('conditions of a retry', () => {
  const attempt = (change: Partial<StageAttempt> = {}) =>
    ({ attempt: 1, hedge: false, laneInUse: 'a', ...change }) as StageAttempt

  it('conditions state how often first attempts of the lane failed, without retries and hedges', () => {
    const { stage, conditions } = setup()
    expect(conditions()).toMatchObject({ errorRate: 0, breakerOpen: false })
    for (let i = 0; i < 15; i++) stage.release?.(attempt(), 'success', undefined, 0)
    for (let i = 0; i < 5; i++) stage.release?.(attempt(), 'failure', undefined, 0)
    expect(conditions()?.errorRate).toBe(0.25)
    for (let i = 0; i < 20; i++) {
      stage.release?.(attempt({ attempt: 2 }), 'failure', undefined, 0)
      stage.release?.(attempt({ hedge: true }), 'failure', undefined, 0)
      stage.release?.(attempt({ laneInUse: 'b' }), 'failure', undefined, 0)
    }
    expect(conditions()?.errorRate).toBe(0.25)
    stage.close()
  })

  it('failures are counted only if a call may be retried more than once', () => {
    expect(setup({}, { attempts: 2 }).stage.release).toBeUndefined()
    expect(setup({}, { attempts: 3 }).stage.release).toBeDefined()
  })

  it.each(['open', 'half-open', 'isolated', 'closed'] as const)(
    'with a breaker that is %s, conditions say whether it is closed',
    (state) => {
      const breaker = { state: (lane: string) => (lane === 'a' ? state : 'closed') }
      const { conditions } = setup({ breaker: breaker as unknown as BreakerLanes })
      expect(conditions()?.breakerOpen).toBe(state !== 'closed')
    },
  )

  it('conditions contain the load of the pod without the call', () => {
    const asked: unknown[] = []
    const { conditions } = setup({
      conditions(call) {
        asked.push(call)
        return { slotsInUse: 0.5 }
      },
    })
    expect(conditions()).toMatchObject({ slotsInUse: 0.5 })
    expect(asked).toEqual([CALL])
  })
})

describe('waits before a retry', () => {
  it('a wait ends after its delay, or when the guard closes', async () => {
    const { clock, stage } = setup()
    const ended: string[] = []
    const wait = (name: string, delayMs: number) =>
      stage.policy?.closing?.sleep(delayMs, undefined).then(() => ended.push(name))
    wait('short', 100)
    wait('long', 1_000)
    await clock.advance(100)
    expect(ended).toEqual(['short'])
    expect(stage.policy?.closing?.closed).toBe(false)
    stage.stopRetries()
    await clock.settle()
    expect(ended).toEqual(['short', 'long'])
    expect(stage.policy?.closing?.closed).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('a wait rejects with the reason of an aborted signal', async () => {
    const { clock, stage } = setup()
    const abort = new AbortController()
    const reason = new Error('caller left')
    const wait = stage.policy?.closing?.sleep(1_000, abort.signal)
    abort.abort(reason)
    await expect(wait).rejects.toBe(reason)
    expect(clock.pending).toBe(0)
  })
})
