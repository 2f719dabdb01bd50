import { describe, expect, it } from 'vitest'
import type { BreakerView } from '../../../store/port.js'
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

describe('breaker replica', () => {
  it('a replica without information is closed', () => {
    expect(new Replica().stateAt(0)).toBe('closed')
  })

  it("replica measures the store's time from the arrival of the view, whatever the local clock says", () => {
    const replica = new Replica()
    expect(replica.receive(open, 5_000)).toBe(true)
    expect(replica.stateAt(14_999)).toBe('open')
    expect(replica.stateAt(15_000)).toBe('half-open')
  })

  it('replica ignores views older than the one it has', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    expect(replica.receive(view({ nowUs: open.nowUs - 1, version: 9 }), 5_001)).toBe(false)
    expect(replica.receive(view({ nowUs: open.nowUs, version: 1 }), 5_001)).toBe(false)
    expect(replica.stateAt(5_001)).toBe('open')
    expect(replica.receive(view({ nowUs: open.nowUs, version: 3 }), 5_001)).toBe(true)
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  it('replica accepts a later view of a store that has lost its state', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    expect(replica.receive(view({ nowUs: open.nowUs + 1, version: 0, generation: 0 }), 5_001)).toBe(
      true,
    )
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  it('replica accepts a store whose clock was set back by much', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    const anHourEarlier = open.nowUs - 50 * SECOND_US
    expect(replica.receive(view({ nowUs: anHourEarlier, version: 3 }), 5_001)).toBe(true)
    expect(replica.stateAt(5_001)).toBe('closed')
  })

  describe('replica with an explicit request', () => {
    const lost = view({ nowUs: open.nowUs - 3 * SECOND_US, version: 0, generation: 0 })

    it('replica accepts a slightly older view as the reply to its own request', () => {
      const replica = new Replica()
      replica.receive(open, 5_000)
      const changesAtRequest = replica.changes
      // An unsolicited view is ignored, because a newer one may have overtaken it.
      expect(replica.receive(lost, 5_001)).toBe(false)
      expect(replica.receive(lost, 5_002, changesAtRequest)).toBe(true)
      expect(replica.stateAt(5_002)).toBe('closed')
    })

    it('replica ignores a reply that a newer view has overtaken', () => {
      const replica = new Replica()
      const changesAtRequest = replica.changes
      replica.receive(open, 5_000)
      expect(replica.receive(lost, 5_001, changesAtRequest)).toBe(false)
      expect(replica.stateAt(5_001)).toBe('open')
    })
  })

  it('isolation overrides every other state until it ends', () => {
    const replica = new Replica()
    replica.receive({ ...open, isolatedUntilUs: 105 * SECOND_US }, 5_000)
    expect(replica.stateAt(9_999)).toBe('isolated')
    expect(replica.stateAt(10_000)).toBe('open')
    expect(replica.stateAt(15_000)).toBe('half-open')
  })
})
