import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { type Report, Reporter } from './reporter.js'

/** A store that answers at once, as long as nothing is wrong. */
function setup() {
  const clock = createVirtualClock()
  const sent: Report[] = []
  const store = { down: false }
  let numbers = 0
  const reporter = new Reporter({
    clock,
    flushMs: () => 100,
    staleMs: 1_000,
    nextNumber: () => ++numbers,
    send(report) {
      sent.push(report)
      if (store.down) throw new Error('down')
    },
  })
  return { clock, sent, store, reporter }
}

describe('a reporter', () => {
  it('goes on after a store that answers at once has failed once', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    reporter.add(1)
    reporter.add(1)
    reporter.endProbe('probe', 0)
    store.down = false
    await clock.until(reporter.flush())
    expect(sent).toMatchObject([
      { sequence: 1, outcomes: [[1, 1]], probes: [] },
      { sequence: 1, outcomes: [[1, 1]], probes: [] },
      { sequence: 2, outcomes: [[1, 1]], probes: [['probe', 0]] },
    ])
  })

  it('forgets what belongs to a generation that is over, but not how probes ended', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    reporter.add(1)
    reporter.add(1)
    reporter.addSuccess()
    reporter.endProbe('probe', 0)
    reporter.begin(7)
    reporter.addSuccess()
    store.down = false
    await clock.until(reporter.flush())
    expect(sent.at(-1)).toEqual({
      sequence: 2,
      generation: 7,
      outcomes: [[0, 1]],
      probes: [['probe', 0]],
    })
  })

  it('keeps no endless list while the store is away', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    for (let call = 0; call < 10_000; call++) {
      reporter.addSuccess()
      reporter.add(1)
    }
    store.down = false
    await clock.until(reporter.flush())
    expect(sent.at(-1)!.outcomes).toHaveLength(512)
    expect(sent.at(-1)!.outcomes.at(-1)).toEqual([1, 1])
  })

  it('tells its last word once and at once, whether or not it is heard', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    reporter.add(1)
    reporter.addSuccess()
    await reporter.close()
    expect(clock.now()).toBe(0)
    expect(sent.map(({ sequence }) => sequence)).toEqual([1, 1, 2])
    await clock.advance(10_000)
    expect(sent).toHaveLength(3)
  })

  it('has nothing to say, and says nothing', async () => {
    const { clock, sent, reporter } = setup()
    await reporter.flush()
    await clock.advance(10_000)
    await reporter.close()
    expect(sent).toEqual([])
  })
})
