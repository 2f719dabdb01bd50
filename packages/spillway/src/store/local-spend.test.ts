import { describe, expect, it } from 'vitest'
import type { LimitSpec } from './limit-spec.js'
import { LocalSpend } from './local-spend.js'

const SECOND = 1_000_000
const windows: LimitSpec = {
  id: 'requests',
  algorithm: 'sliding-window',
  limit: 200,
  windowUs: 5 * SECOND,
  slices: 50,
  burst: 0,
  span: 'lane',
}

/** Number of calls that a pod grants by itself at that moment. */
function takes(own: LocalSpend, nowUs: number, pods = 4, spec = windows): number {
  const costs = Array.from({ length: 300 }, () => [1])
  const asked = { lane: 'a', specs: [spec], rules: ['share'] as const, costs, nowUs }
  return own.take({ ...asked, fleet: { pods, rank: 0 } }).granted
}

describe('LocalSpend: limits of a pod that has just lost the store', () => {
  it('pod spends its share of the remaining units if there were enough for all pods', () => {
    const own = new LocalSpend()
    own.saw('a', [windows], [180], 10 * SECOND)
    expect(takes(own, 10.2 * SECOND)).toBe(45)
  })

  it('pod spends nothing after a refusal, because pods that reach the store use the rest', () => {
    const own = new LocalSpend()
    own.refused('a', [windows], [1], 10 * SECOND)
    own.saw('a', [windows], [200], 12 * SECOND)
    expect(takes(own, 12.1 * SECOND)).toBe(0)
  })

  it('pod spends nothing if few units were left within the last window', () => {
    const own = new LocalSpend()
    own.saw('a', [windows], [40], 10 * SECOND)
    own.saw('a', [windows], [200], 12 * SECOND)
    expect(takes(own, 12.1 * SECOND)).toBe(0)
    own.saw('a', [windows], [200], 18 * SECOND)
    expect(takes(own, 18.1 * SECOND)).toBe(50)
  })

  it('pod spends nothing if it already wanted more than its share during an outage', () => {
    const own = new LocalSpend()
    own.saw('a', [windows], [200], 10 * SECOND)
    expect(takes(own, 10.1 * SECOND)).toBe(50)
    own.saw('a', [windows], [150], 11 * SECOND)
    expect(takes(own, 11.1 * SECOND)).toBe(0)
  })

  it('the only pod spends all remaining units', () => {
    const own = new LocalSpend()
    own.refused('a', [windows], [1], 10 * SECOND)
    own.saw('a', [windows], [200], 12 * SECOND)
    expect(takes(own, 12.1 * SECOND, 1)).toBe(200)
  })

  it('pod has its full share again once the window before the outage has passed', () => {
    const own = new LocalSpend()
    own.refused('a', [windows], [1], 10 * SECOND)
    expect(takes(own, 18 * SECOND)).toBe(0)
    expect(takes(own, 18.6 * SECOND)).toBe(50)
  })
})
