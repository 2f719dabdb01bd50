import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import { type AnswerFeedback, FeedbackReader, type LaneFeedback } from './feedback-reader.js'
import type { UnitLimit } from './options.js'
import type { LanePermit } from './permit.js'

const LIMITS = [{ unit: 'requests', spec: { limit: 1_000 } }] as unknown as readonly UnitLimit[]
const REFUSED = { costs: [1], booked: [1], stamps: [0] }

function setup({ basePauseOnly = false } = {}) {
  const clock = createVirtualClock()
  const sent: [lane: string, feedback: LaneFeedback][] = []
  const reader = new FeedbackReader({
    clock,
    lanes: new LaneRegistry({ name: 'vendor', clock }),
    basePauseMs: 500,
    send: (lane, feedback) => sent.push([lane, feedback]),
  })
  const permit = {
    ...{ lane: 'a', grantedUs: 7, basePauseOnly },
    refused: () => REFUSED,
  } as unknown as LanePermit
  const answer = (of: Partial<AnswerFeedback>) =>
    reader.updateFromResponse({ status: 200, headers: {}, ...of }, permit, LIMITS)
  return { clock, reader, permit, sent, answer }
}

describe('feedback of vendor responses', () => {
  it('a good response without headers is not sent to the store', () => {
    const { answer, sent } = setup()
    expect(answer({})).toBeUndefined()
    expect(sent).toEqual([])
  })

  it('a 429 is sent with its pause and the refunded permit', () => {
    const { answer, sent } = setup()
    expect(answer({ status: 429, headers: { 'retry-after': '7' } })).toBe(1)
    const feedback = {
      ...{ grantedUs: 7, pauseUs: 7_000_000, refused: REFUSED, failure: undefined },
      ...{ throttled: true, left: [] },
    }
    expect(sent).toEqual([['a', feedback]])
  })

  it.each([
    ['a fraction of a microsecond', { headers: { 'retry-after-ms': '0.0001' } }, 1],
    ['a failure without headers', { failure: { kind: 'rate-limited', retryAfterMs: 3 } }, 3_000],
    [
      'a header and a failure',
      { headers: { 'retry-after-ms': '9' }, failure: { kind: 'rate-limited', retryAfterMs: 3 } },
      9_000,
    ],
    [
      'a header and a spent quota',
      { headers: { 'retry-after-ms': '9' }, failure: { kind: 'quota-exhausted', retryAfterMs: 3 } },
      3_000,
    ],
  ] as [string, Partial<AnswerFeedback>, number][])(
    'a 429 with %s pauses the lane',
    (_, of, pauseUs) => {
      const { answer, sent } = setup()
      answer({ status: 429, ...of })
      expect(sent[0]?.[1].pauseUs).toBe(pauseUs)
    },
  )

  it('a 429 without a time pauses the lane for basePauseMs if the pause must not grow', () => {
    const growing = setup()
    growing.answer({ status: 429 })
    expect(growing.sent[0]?.[1].pauseUs).toBeUndefined()
    const fixed = setup({ basePauseOnly: true })
    fixed.answer({ status: 429 })
    expect(fixed.sent[0]?.[1].pauseUs).toBe(500_000)
    expect(fixed.reader.fixedPauseMs(fixed.permit)).toBe(500)
  })

  it.each([
    [429, undefined, {}, true],
    [429, 'quota-exhausted', {}, true],
    [429, 'context-window', {}, false],
    [400, 'rate-limited', {}, true],
    [503, undefined, { 'retry-after': '1' }, true],
    [529, 'overloaded', { 'retry-after': '1' }, true],
    [503, undefined, {}, false],
    [529, undefined, {}, false],
    [500, undefined, { 'retry-after': '1' }, false],
  ] as const)(
    'status %d, failure %s and headers %j throttle: %s',
    (status, kind, headers, throttles) => {
      const { answer, sent } = setup()
      answer({ status, headers, failure: kind && { kind } })
      expect(sent.map(([, { throttled }]) => throttled)).toEqual(throttles ? [true] : [])
    },
  )

  it.each([
    [429, undefined, true],
    [429, 'rate-limited', true],
    [429, 'quota-exhausted', false],
    [529, undefined, false],
  ] as const)('status %d with failure %s refunds the permit: %s', (status, kind, refunds) => {
    const { answer, sent } = setup()
    answer({ status, headers: { 'retry-after': '1' }, failure: kind && { kind } })
    expect(sent[0]?.[1].refused).toEqual(refunds ? REFUSED : undefined)
  })

  it('a good response with new remaining units is sent', () => {
    const { answer, sent } = setup()
    answer({ headers: { 'x-ratelimit-remaining-requests': '50' } })
    expect(sent).toMatchObject([['a', { throttled: false, left: [{ remaining: 50 }] }]])
  })

  it('sweep() forgets a lane after a minute without a response', async () => {
    const recovers = async (unusedMs: number) => {
      const { clock, reader, answer, sent } = setup()
      answer({ status: 429 })
      await clock.advance(unusedMs)
      reader.sweep(clock.now())
      answer({})
      return sent.length === 2
    }
    expect(await recovers(60_000)).toBe(true)
    expect(await recovers(60_001)).toBe(false)
  })

  it('a status of 399 is good and one of 400 is not, so only good ones are read now and then', () => {
    const { answer, sent, reader } = setup()
    const headers = { 'x-ratelimit-remaining-requests': '50' }
    for (let i = 0; i < 20; i++) answer({ status: 399 })
    answer({ status: 399, headers })
    expect(sent).toEqual([])
    answer({ status: 400, headers })
    expect(sent).toHaveLength(1)
    reader.close()
  })
})
