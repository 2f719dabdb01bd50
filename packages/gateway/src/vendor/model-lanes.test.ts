import { describe, expect, it } from 'vitest'
import { ModelLanes, ModelLimits } from './model-lanes.js'

const parts = (model: string, key?: string) => ({ model, key })

function createLanes(maxLanes = 1_000) {
  let nowMs = 0
  const lanes = new ModelLanes(maxLanes, ['named'], { now: () => nowMs })
  return {
    lanes,
    wait: (ms: number) => {
      nowMs += ms
    },
    /** How many of these models have a lane after they were answered. */
    answer(prefix: string, count: number): number {
      let own = 0
      for (let i = 0; i < count; i++) {
        if (lanes.answered(parts(`${prefix}-${i}`)) === `${prefix}-${i}`) own++
      }
      return own
    },
  }
}

describe('lanes of models', () => {
  it('a model that the configuration does not name uses (other) until it was answered', () => {
    const { lanes } = createLanes()
    expect(lanes.laneOf(parts('named'))).toBe('named')
    expect(lanes.laneOf(parts('new'))).toBe('(other)')
    expect(lanes.laneOf(parts('new', 'first'))).toBe('(other) (first)')
    expect(lanes.answered(parts('new'))).toBe('new')
    expect(lanes.laneOf(parts('new'))).toBe('new')
  })

  it('a new model uses the lane of its entry of models, of its key if there are several', () => {
    const { lanes } = createLanes()
    const limits = new ModelLimits({
      models: [{ match: 'opus-*', pool: 'opus' }],
      pools: { opus: { limits: [{ limit: 1, windowMs: 1_000 }] } },
      guard: {},
    })
    lanes.configure(1_000, ['named'], limits)
    expect(lanes.laneOf(parts('opus-4'))).toBe('(other opus-*)')
    expect(lanes.laneOf(parts('opus-4', 'first'))).toBe('(other opus-* (first))')
    expect(lanes.laneOf(parts('new'))).toBe('(other)')
    expect(lanes.answered(parts('opus-4'))).toBe('opus-4')
  })

  it('a new model has its lane at once if limits of the vendor count per model, and not if they all span the vendor', () => {
    const { lanes } = createLanes()
    const limit = { limit: 6, windowMs: '1m' as const }
    lanes.configure(1_000, [], new ModelLimits({ guard: { limits: [limit] } }))
    expect(lanes.laneOf(parts('gpt-4o'))).toBe('gpt-4o')
    expect(lanes.laneOf(parts('gpt-4o', 'first'))).toBe('gpt-4o (first)')
    const spanning = { ...limit, per: 'vendor' as const }
    lanes.configure(1_000, [], new ModelLimits({ guard: { limits: [spanning] } }))
    expect(lanes.laneOf(parts('new'))).toBe('(other)')
  })

  it('a new model whose entry has limits has its lane at once, and made-up names get at most 20', () => {
    const { lanes, wait } = createLanes()
    const own = { match: 'gpt-*', limits: [{ limit: 3, windowMs: '1h' as const }] }
    lanes.configure(1_000, [], new ModelLimits({ models: [own], guard: {} }))
    expect(lanes.laneOf(parts('gpt-4'))).toBe('gpt-4')
    const names = Array.from({ length: 100 }, (_, index) => lanes.laneOf(parts(`gpt-x${index}`)))
    expect(names.filter((name) => name === '(other gpt-*)')).toHaveLength(81)
    expect(lanes.laneOf(parts('gpt-sk-proj-abcdef123 please'))).toBe('(other gpt-*)')
    expect(lanes.laneOf(parts('new'))).toBe('(other)')
    wait(59_999)
    expect(lanes.laneOf(parts('gpt-5'))).toBe('(other gpt-*)')
    wait(1)
    expect(lanes.laneOf(parts('gpt-5'))).toBe('gpt-5')
    expect(lanes.size).toBe(1)
  })

  it('made-up names that match an entry with limits do not keep an answered model from getting its lane', () => {
    const { lanes, wait } = createLanes()
    const own = { match: 'gpt-*', limits: [{ limit: 3, window: 'day' as const }] }
    lanes.configure(1_000, [], new ModelLimits({ models: [own], guard: {} }))
    for (let second = 0; second < 50; second++) {
      for (let name = 0; name < 20; name++) lanes.laneOf(parts(`gpt-${second}-${name}`))
      wait(1_000)
    }
    expect(lanes.size).toBe(20)
    expect(lanes.laneOf(parts('gpt-5'))).toBe('(other gpt-*)')
    expect(lanes.answered(parts('gpt-5'))).toBe('gpt-5')
  })

  it('answers that arrive after their lanes were forgotten do not raise the number of lanes for good', () => {
    const { lanes, wait, answer } = createLanes(5)
    for (const round of ['first', 'second', 'third']) {
      expect(answer(round, 5)).toBe(5)
      wait(61_000)
    }
    for (let lane = 0; lane < 5; lane++) learn(lanes, `first-${lane}`, 100)
    expect(lanes.size).toBe(10)
    wait(61_000)
    expect(answer('fourth', 1)).toBe(1)
    expect(lanes.size).toBe(5)
  })

  it('an answered model keeps its lane while its requests may count, and a name without answer for a minute', () => {
    const { lanes, wait } = createLanes()
    const own = { match: 'gpt-*', limits: [{ limit: 3, windowMs: '1h' as const }] }
    const rules = new ModelLimits({ models: [own], guard: {} })
    lanes.configure(2, [], rules)
    lanes.answered(parts('gpt-4'))
    lanes.laneOf(parts('gpt-made-up'))
    wait(61_000)
    expect(lanes.laneOf(parts('gpt-5'))).toBe('gpt-5')
    expect(lanes.laneOf(parts('gpt-4'))).toBe('gpt-4')
    wait(59 * 60_000)
    lanes.answered(parts('gpt-5'))
    wait(2 * 60_000)
    expect(lanes.laneOf(parts('gpt-6'))).toBe('gpt-6')
  })

  it('a vendor that answers for every name gets 20 lanes at once and 5 more per second', () => {
    const { lanes, wait, answer } = createLanes()
    expect(answer('first', 500)).toBe(20)
    wait(1_000)
    expect(answer('second', 500)).toBe(5)
    wait(60_000)
    expect(answer('third', 500)).toBe(20)
    expect(lanes.size).toBe(45)
  })

  it('a model that got no lane with its first answer gets one with a later answer', () => {
    const { lanes, wait, answer } = createLanes()
    answer('made-up', 500)
    expect(lanes.answered(parts('real'))).toBe('(other)')
    wait(200)
    expect(lanes.answered(parts('real'))).toBe('real')
  })

  it('with maxLanes lanes a new model gets one only after another was unused for a minute', () => {
    const { lanes, wait, answer } = createLanes(10)
    expect(answer('first', 12)).toBe(10)
    wait(59_000)
    lanes.laneOf(parts('first-0'))
    expect(answer('second', 1)).toBe(0)
    wait(2_000)
    expect(answer('second', 1)).toBe(1)
    expect(lanes.laneOf(parts('first-0'))).toBe('first-0')
    expect(lanes.laneOf(parts('first-1'))).toBe('(other)')
  })

  it('a lane that was used within the last minute is not given to a new model', () => {
    const { lanes, wait, answer } = createLanes(1)
    expect(answer('first', 1)).toBe(1)
    wait(59_999)
    lanes.laneOf(parts('first-0'))
    wait(59_999)
    expect(answer('second', 1)).toBe(0)
    wait(1)
    expect(answer('second', 1)).toBe(1)
  })

  it('a lane that the configuration names is not given to a new model', () => {
    const { lanes, wait, answer } = createLanes(1)
    learn(lanes, 'named', 100)
    wait(100_000)
    expect(answer('new', 1)).toBe(0)
    expect(lanes.size).toBe(1)
  })

  it('a model name that may be a key or a prompt gets no lane', () => {
    const { lanes } = createLanes()
    for (const model of ['sk-proj-abcdef123', 'tell me a story', 'm'.repeat(201)]) {
      expect(lanes.answered(parts(model))).toBe('(other)')
      expect(lanes.laneOf(parts(model))).toBe('(other)')
    }
    expect(lanes.size).toBe(0)
  })

  it('a request without a model uses the lane of its key, or none', () => {
    const { lanes } = createLanes()
    expect(lanes.laneOf({ model: undefined, key: 'first' })).toBe('first')
    expect(lanes.laneOf({ model: undefined, key: undefined })).toBeUndefined()
    expect(lanes.answered({ model: undefined, key: undefined })).toBeUndefined()
    expect(lanes.answered(parts('new', 'first'))).toBe('new (first)')
    expect(lanes.laneOf(parts('(other)'))).toBe('(other)')
  })

  it('another configuration changes named lanes and maxLanes, and keeps answered models', () => {
    const { lanes, answer } = createLanes(2)
    expect(answer('first', 1)).toBe(1)
    lanes.configure(1, ['later'])
    expect(lanes.laneOf(parts('named'))).toBe('(other)')
    expect(lanes.laneOf(parts('later'))).toBe('later')
    expect(lanes.laneOf(parts('first-0'))).toBe('first-0')
    expect(answer('second', 1)).toBe(0)
  })

  it('the expected answer length of a lane is learned from answers of that lane only', () => {
    const { lanes } = createLanes()
    const usual = (lane?: string) => lanes.estimatesOf(lane).answer()
    const before = usual('a')
    for (let i = 0; i < 100; i++) learn(lanes, 'a', before + 1_000)
    expect(usual('a')).toBeGreaterThan(before)
    expect(usual('b')).toBe(before)
    expect(usual()).toBe(before)
    for (let i = 0; i < 100; i++) learn(lanes, undefined, before + 1_000)
    expect(usual()).toBeGreaterThan(before)
  })
})

/** An answer of this length in a lane. */
function learn(lanes: ModelLanes, lane: string | undefined, outputTokens: number): void {
  lanes.learn(lane, { outputTokens }, { prompt: undefined, answers: 1 }, 0)
}
