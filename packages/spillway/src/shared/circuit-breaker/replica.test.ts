import { describe, expect, it } from 'vitest'
import type { BreakerView } from '../../store/port.js'
import { Replica } from './replica.js'

const SECOND_US = 1_000_000

function view(of: Partial<BreakerView>): BreakerView {
  return {
    nowUs: 100 * SECOND_US,
    version: 1,
    generation: 1,
    kind: 0,
    untilUs: 0,
    closedAtUs: 0,
    openings: 0,
    probes: 0,
    successes: 0,
    failedProbes: 0,
    isolatedUntilUs: 0,
    calls: 0,
    failures: 0,
    slow: 0,
    inFlight: 0,
    consecutive: 0,
    ...of,
  }
}

const open = view({ kind: 1, version: 2, untilUs: 110 * SECOND_US })

describe('a replica', () => {
  it('knows nothing, and takes that for closed', () => {
    expect(new Replica().stateAt(0)).toBe('closed')
  })

  it('counts the store’s time from when it heard, whatever its own clock says', () => {
    const replica = new Replica()
    expect(replica.hear(open, 5_000)).toBe(true)
    expect(replica.stateAt(14_999)).toBe('open')
    expect(replica.stateAt(15_000)).toBe('half-open')
  })

  it('does not go back to what was before', () => {
    const replica = new Replica()
    replica.hear(open, 5_000)
    expect(replica.hear(view({ nowUs: open.nowUs - 1, version: 9 }), 5_001)).toBe(false)
    expect(replica.hear(view({ nowUs: open.nowUs, version: 1 }), 5_001)).toBe(false)
    expect(replica.stateAt(5_001)).toBe('open')
    expect(replica.hear(view({ nowUs: open.nowUs, version: 3 }), 5_001)).toBe(true)
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  it('believes a store that has lost its state: it is later, if less', () => {
    const replica = new Replica()
    replica.hear(open, 5_000)
    expect(replica.hear(view({ nowUs: open.nowUs + 1, version: 0, generation: 0 }), 5_001)).toBe(
      true,
    )
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  it('believes a store whose clock was set back', () => {
    const replica = new Replica()
    replica.hear(open, 5_000)
    const anHourEarlier = open.nowUs - 50 * SECOND_US
    expect(replica.hear(view({ nowUs: anHourEarlier, version: 3 }), 5_001)).toBe(true)
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  describe('that has asked', () => {
    const lost = view({ nowUs: open.nowUs - 3 * SECOND_US, version: 0, generation: 0 })

    it('believes a store that has lost its state and is a little less far on', () => {
      const replica = new Replica()
      replica.hear(open, 5_000)
      const asked = replica.news
      // Not what it is told without having asked: that may have been overtaken.
      expect(replica.hear(lost, 5_001)).toBe(false)
      expect(replica.hear(lost, 5_002, asked)).toBe(true)
      expect(replica.stateAt(5_002)).toBe('closed')
    })

    it('does not go back to an answer that something newer has overtaken', () => {
      const replica = new Replica()
      const asked = replica.news
      replica.hear(open, 5_000)
      expect(replica.hear(lost, 5_001, asked)).toBe(false)
      expect(replica.stateAt(5_001)).toBe('open')
    })
  })

  it('takes isolation for more than anything else, until that is over', () => {
    const replica = new Replica()
    replica.hear({ ...open, isolatedUntilUs: 105 * SECOND_US }, 5_000)
    expect(replica.stateAt(9_999)).toBe('isolated')
    expect(replica.stateAt(10_000)).toBe('open')
    expect(replica.stateAt(15_000)).toBe('half-open')
  })
})
