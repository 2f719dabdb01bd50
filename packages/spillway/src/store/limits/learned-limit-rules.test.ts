/** The rules of a learned limit, each at the edge where it begins to hold. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import { advance, type Count, emptyCount } from './counting.js'
import {
  learnedLifeUs,
  learnedSpec,
  learnFromLeft,
  learnFromRefusal,
  noteFull,
  rebaseLearned,
} from './learned-limit.js'
import type { LearnedLimit } from './learned-state.js'

const NOW = 2_000_000_000_000_000
const WINDOW_US = 3_000_000
const HOUR_US = 3_600_000_000

function specOf(change: Partial<LimitSpec> = {}): LimitSpec {
  return {
    ...{ id: 'requests', algorithm: 'sliding-window', limit: 1_000, windowUs: WINDOW_US },
    ...{ slices: 30, burst: 0, span: 'lane', learn: true },
    ...change,
  }
}

/** Lowered long ago to 60, and since then in full use. */
function learnedOf(change: Partial<LearnedLimit> = {}): LearnedLimit {
  return {
    ...{ limit: 60, accepted: 60, before: 0, from: 0, version: 1 },
    ...{ loweredUs: NOW - 20 * WINDOW_US, steppedUs: NOW - 20 * WINDOW_US, steps: 0 },
    ...{ missing: 1, fullUs: NOW - WINDOW_US },
    ...change,
  }
}

function countOf(learned: LearnedLimit | undefined, units = 0, spec = specOf()): Count {
  const count = emptyCount()
  advance(spec, count, NOW, 1)
  return { ...count, units, learned }
}

/** The learned limit at `NOW`, after a raise that is due; undefined if the configured one is in force. */
function limitOf(learned: LearnedLimit, { limit = 1_000, version = 1, setUs = 0 } = {}) {
  const count = countOf(learned)
  const spec = learnedSpec(specOf({ limit }), count, { now: NOW, version, setUs })
  expect(spec.limit).toBe(count.learned?.limit ?? limit)
  return count.learned?.limit
}

describe('limit in force', () => {
  it('a limit of which nothing was learned is the configured one itself', () => {
    const spec = specOf()
    expect(learnedSpec(spec, countOf(undefined), { now: NOW, version: 1, setUs: 0 })).toBe(spec)
  })

  it('a learned limit is forgotten more than an hour after its last change', () => {
    const idle = { missing: 0 }
    expect(limitOf(learnedOf({ ...idle, steppedUs: NOW - HOUR_US }))).toBe(60)
    expect(limitOf(learnedOf({ ...idle, steppedUs: NOW - HOUR_US - 1 }))).toBeUndefined()
  })

  it('a learned limit is forgotten when an operator changes the limits, or sets one for a while', () => {
    const idle = learnedOf({ missing: 0 })
    expect(limitOf({ ...idle }, { version: 1 })).toBe(60)
    expect(limitOf({ ...idle }, { version: 2 })).toBeUndefined()
    expect(limitOf({ ...idle }, { setUs: idle.loweredUs })).toBe(60)
    expect(limitOf({ ...idle }, { setUs: idle.loweredUs + 1 })).toBeUndefined()
  })

  it('a learned limit that rises to the configured one is forgotten', () => {
    expect(limitOf(learnedOf({ missing: 39 }), { limit: 100 })).toBe(99)
    expect(limitOf(learnedOf({ missing: 40 }), { limit: 100 })).toBeUndefined()
  })

  it('a learned limit is raised a quarter of a window after it held calls back, and not without that', () => {
    expect(limitOf(learnedOf({ missing: 0 }))).toBe(60)
    expect(limitOf(learnedOf({ fullUs: NOW - WINDOW_US / 4 }))).toBe(61)
    expect(limitOf(learnedOf({ fullUs: NOW - WINDOW_US / 4 + 1 }))).toBe(60)
  })

  it.each([
    { limit: 10, steps: 0, windows: 2 },
    { limit: 9, steps: 0, windows: 4 },
    { limit: 4, steps: 0, windows: 4 },
    { limit: 3, steps: 0, windows: 6 },
    { limit: 3, steps: 1, windows: 1 },
  ])('a limit of $limit after $steps raises is raised after $windows windows', (each) => {
    const { limit, steps, windows } = each
    const before = NOW - windows * WINDOW_US
    expect(limitOf(learnedOf({ limit, steps, steppedUs: before + 1 }))).toBe(limit)
    expect(limitOf(learnedOf({ limit, steps, steppedUs: before }))).toBeGreaterThan(limit)
  })

  it.each([
    [{ steps: 0, missing: 5 }, 105],
    [{ steps: 1 }, 107],
    [{ steps: 2 }, 125],
    [{ steps: 3 }, 200],
    [{ steps: 1, missing: 30 }, 130],
    // The limit that was refused last is tried before a higher one.
    [{ steps: 3, from: 110 }, 110],
    [{ steps: 3, from: 110, missing: 20 }, 120],
    [{ steps: 3, from: 100 }, 200],
    [{ steps: 1, from: 190 }, 107],
  ])('a learned limit of 100 with %j rises to %d', (change, raised) => {
    expect(limitOf(learnedOf({ limit: 100, ...change }))).toBe(raised)
  })

  it('each raise except the first records the limit before it as accepted', () => {
    const acceptedAfter = (steps: number) => {
      const learned = learnedOf({ limit: 80, accepted: 70, steps })
      limitOf(learned)
      expect(learned).toMatchObject({ steps: steps + 1, steppedUs: NOW, missing: 0, fullUs: 0 })
      return learned.accepted
    }
    expect([acceptedAfter(0), acceptedAfter(1)]).toEqual([70, 80])
  })
})

describe('full use of a learned limit', () => {
  const isFull = (spec: LimitSpec, units: number, cost: number, learned?: LearnedLimit) =>
    noteFull(spec, countOf(learned, units, spec), NOW, cost)
  const idle = () => learnedOf({ missing: 0, fullUs: 0 })

  it('a learned limit records the cost of the first call that waits, and ignores calls without a cost', () => {
    const spec = specOf({ limit: 100 })
    const learned = idle()
    expect(isFull(spec, 100, 3, learned)).toBe(true)
    expect(learned).toMatchObject({ missing: 3, fullUs: NOW })
    expect(isFull(spec, 100, 4, learned)).toBe(false)
    expect(learned.missing).toBe(3)
    expect(isFull(spec, 100, 0, idle())).toBe(false)
    expect(isFull(spec, 100, 3, undefined)).toBe(false)
  })

  it.each([
    ['sliding-window', 160, 149, 150],
    ['fixed-window', 160, 119, 120],
    ['sliding-window', 8, 6, 7],
  ] as const)('a %s of %d is not full at %d, and full at %d', (algorithm, limit, below, full) => {
    const spec = specOf({ algorithm, limit })
    expect(isFull(spec, below, 1, idle())).toBe(false)
    expect(isFull(spec, full, 1, idle())).toBe(true)
  })

  it('a call that costs more than the limit finds it full only while other units are in use', () => {
    expect(isFull(specOf({ limit: 100 }), 0, 500, idle())).toBe(false)
    expect(isFull(specOf({ limit: 100 }), 1, 500, idle())).toBe(true)
  })
})

describe('refusal of a call', () => {
  const refuse = (spec: LimitSpec, count: Count, grantedUs = NOW, cost = 1) =>
    learnFromRefusal(spec, count, { grantedUs, cost }, NOW, 1)?.limit

  it('a late refusal lowers the limit once more if its call was counted as accepted', () => {
    const loweredUs = NOW - 1_000
    const refused = (grantedUs: number, steps = 0) => {
      const learned = learnedOf({ loweredUs, before: 60, from: 100, steps })
      const count = countOf(learned, 60)
      return [refuse(specOf({ limit: 60 }), count, grantedUs, 2), learned.accepted]
    }
    expect(refused(loweredUs)).toEqual([58, 58])
    expect(refused(loweredUs - WINDOW_US + 1)).toEqual([58, 58])
    expect(refused(loweredUs - WINDOW_US)).toEqual([60, 60])
    expect(refused(loweredUs, 1)).toEqual([60, 60])
  })

  it('without a count of the window, refusals of one window lower the limit once', () => {
    const refused = (agoUs: number, change: Partial<LearnedLimit> = {}) => {
      const learned = learnedOf({ loweredUs: NOW - agoUs, limit: 100, accepted: 80, ...change })
      const count = countOf(learned)
      refuse(specOf({ algorithm: 'fixed-window', limit: 100 }), count)
      return [count.learned?.loweredUs === NOW, count.learned?.accepted]
    }
    expect(refused(WINDOW_US - 1)).toEqual([false, 80])
    expect(refused(WINDOW_US)).toEqual([true, 70])
    // After a raise, the limit before it is what was accepted.
    expect(refused(WINDOW_US - 1, { steps: 1 })).toEqual([true, 80])
    expect(refused(WINDOW_US - 1, { steps: 1, accepted: 150 })).toEqual([true, 100])
  })

  it('a sliding window is lowered to what was accepted, also within a window', () => {
    const count = countOf(learnedOf({ loweredUs: NOW - 1, accepted: 90 }), 80)
    expect(refuse(specOf({ limit: 100 }), count)).toBe(80)
  })

  it('the first refusal without a count of the window lowers the limit by 30 %', () => {
    const count = countOf(undefined)
    expect(refuse(specOf({ algorithm: 'token-bucket', limit: 1_001 }), count)).toBe(700)
  })

  it.each([
    // The second refusal confirms the first from three quarters to five quarters of it.
    { before: 80, accepted: 59, limit: 150 },
    { before: 80, accepted: 60, limit: 60 },
    { before: 80, accepted: 100, limit: 100 },
    { before: 80, accepted: 101, limit: 150 },
    { before: 80, accepted: 160, limit: 160 },
  ])('after $before, $accepted accepted of 300 lower the limit to $limit', (each) => {
    const loweredUs = NOW - 10 * WINDOW_US
    const count = countOf(learnedOf({ accepted: each.before, loweredUs }), each.accepted)
    expect(refuse(specOf({ limit: 300 }), count)).toBe(each.limit)
    expect(count.learned?.before).toBe(each.before)
  })

  it('refusals that are more than ten windows apart do not confirm each other', () => {
    const loweredUs = NOW - 10 * WINDOW_US - 1
    const count = countOf(learnedOf({ accepted: 80, loweredUs }), 80)
    expect(refuse(specOf({ limit: 300 }), count)).toBe(150)
    expect(count.learned?.before).toBe(0)
  })
})

describe('units that the vendor reports as left', () => {
  const report = (left: number, change: Partial<LimitSpec> = {}, units = 50, agoUs = 0) => {
    const spec = specOf({ limit: 100, ...change })
    const at = { grantedUs: NOW - agoUs, now: NOW, version: 1 }
    return learnFromLeft(spec, countOf(undefined, units, spec), left, at)?.limit
  }

  it('a report of less than 90 % of the limit lowers it, and a report of zero units does not', () => {
    expect([report(40), report(39), report(0, {}, 0)]).toEqual([undefined, 89, undefined])
  })

  it('only a recent report about a sliding window lowers the limit', () => {
    expect(report(20, {}, 50, WINDOW_US / 10)).toBe(70)
    expect(report(20, {}, 50, WINDOW_US / 10 + 1)).toBeUndefined()
    expect(report(20, { algorithm: 'fixed-window' })).toBeUndefined()
  })
})

describe('life of a learned limit', () => {
  it('a learned limit is kept for an hour after its last change, and nothing is kept without one', () => {
    expect(learnedLifeUs(countOf(undefined), NOW)).toBe(0)
    expect(learnedLifeUs(countOf(learnedOf({ steppedUs: NOW - 5 })), NOW)).toBe(HOUR_US - 5)
  })

  it('all times of a learned limit follow a clock that is set back', () => {
    const learned = learnedOf({ loweredUs: NOW - 1, steppedUs: NOW - 2, fullUs: NOW - 3 })
    rebaseLearned(countOf(learned), 1_000)
    const { loweredUs, steppedUs, fullUs } = learned
    expect([loweredUs, steppedUs, fullUs]).toEqual([NOW - 1_001, NOW - 1_002, NOW - 1_003])
    rebaseLearned(countOf(undefined), 1_000)
  })
})
