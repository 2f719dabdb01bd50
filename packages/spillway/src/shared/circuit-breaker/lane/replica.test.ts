import { describe, expect, it } from 'vitest'
import type { BreakerSpec } from '../../../store/breaker-spec.js'
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

  it('replica accepts a view with the version that it has, and notes when it arrived', () => {
    const replica = new Replica()
    expect(replica.receivedMs).toBe(Number.NEGATIVE_INFINITY)
    replica.receive(open, 5_000)
    expect(replica.receive(open, 6_000)).toBe(true)
    expect(replica).toMatchObject({ view: open, changes: 2, receivedMs: 6_000 })
  })

  it('replica ignores a view that is 5 s behind, and accepts one that is further behind', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    const behind = (us: number) => view({ nowUs: open.nowUs - us, version: 9 })
    expect(replica.receive(behind(5 * SECOND_US), 5_001)).toBe(false)
    expect(replica.receive(behind(5 * SECOND_US + 1), 5_001)).toBe(true)
  })

  it("replica translates the end of isolation and the time of closing to this pod's time", () => {
    const replica = new Replica()
    expect(replica).toMatchObject({ isolatedUntilMs: 0, closedAtMs: Number.NEGATIVE_INFINITY })
    const times = { isolatedUntilUs: 101 * SECOND_US, closedAtUs: 98 * SECOND_US }
    replica.receive(view(times), 5_000)
    expect(replica).toMatchObject({ isolatedUntilMs: 6_000, closedAtMs: 3_000, openUntilMs: 0 })
    expect(replica.endsMs('isolated')).toBe(6_000)
    replica.receive(view({ version: 2 }), 5_000)
    expect(replica).toMatchObject({ isolatedUntilMs: 0, closedAtMs: Number.NEGATIVE_INFINITY })
  })

  it('open and isolated end by themselves, other states do not', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    expect(replica.endsMs('open')).toBe(15_000)
    expect(replica.endsMs('half-open')).toBeUndefined()
    expect(replica.endsMs('closed')).toBeUndefined()
  })

  it('a half-open view is half-open although an earlier open time has not passed', () => {
    const replica = new Replica()
    replica.receive(open, 5_000)
    replica.receive(view({ kind: 2, version: 3 }), 5_001)
    expect(replica.stateAt(5_001)).toBe('half-open')
  })

  it('replica describes why the circuit opened, anew for each view', () => {
    const spec = { consecutive: 0, failureRate: 0.5, slowRate: 0, minimumCalls: 10 } as BreakerSpec
    const replica = new Replica()
    replica.receive({ ...open, calls: 20, failures: 15 }, 5_000)
    expect(replica.cause(spec)).toBe('failure rate 75 % of 20 calls')
    replica.receive({ ...open, calls: 20, failures: 16 }, 5_001)
    expect(replica.cause(spec)).toBe('failure rate 80 % of 20 calls')
  })
})
