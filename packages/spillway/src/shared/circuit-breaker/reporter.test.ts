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
    inFlight: () => [0, 1],
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
    reporter.addLater(0)
    reporter.endProbe('probe', 0)
    reporter.begin(7)
    reporter.addLater(0)
    store.down = false
    await clock.until(reporter.flush())
    expect(sent.at(-1)).toEqual({
      sequence: 2,
      generation: 7,
      outcomes: [[0, 1]],
      inFlight: [0, 1],
      probes: [['probe', 0]],
    })
  })

  it('keeps no endless list while the store is away', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    for (let call = 0; call < 10_000; call++) {
      reporter.addLater(0)
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
    reporter.addLater(0)
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

  describe('of which somebody takes a report along', () => {
    it('hands over what has waited half of its time, and nothing twice', async () => {
      const { clock, sent, reporter } = setup()
      expect(reporter.ride()).toBeUndefined()
      reporter.addLater(0)
      await clock.advance(49)
      expect(reporter.ride()).toBeUndefined()
      reporter.addLater(0)
      await clock.advance(1)
      const ride = reporter.ride()
      expect(ride?.report).toEqual({
        sequence: 1,
        generation: 0,
        outcomes: [[0, 2]],
        inFlight: [0, 1],
        probes: [],
      })
      expect(reporter.ride()).toBeUndefined()
      ride?.arrived()
      await clock.advance(1_000)
      expect(sent).toEqual([])
      expect(reporter.isIdle).toBe(true)
    })

    it('sends nothing else meanwhile, and afterwards at once what cannot wait', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const ride = reporter.ride()
      reporter.addLater(0)
      reporter.add(1)
      expect(sent).toEqual([])
      ride?.arrived()
      expect(sent).toMatchObject([
        {
          sequence: 2,
          outcomes: [
            [0, 1],
            [1, 1],
          ],
        },
      ])
    })

    it('lets what came meanwhile wait for a ride of its own', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const ride = reporter.ride()
      reporter.addLater(0)
      await clock.advance(5)
      ride?.arrived()
      await clock.advance(50)
      expect(reporter.ride()?.report).toMatchObject({ sequence: 2, outcomes: [[0, 1]] })
      expect(sent).toEqual([])
    })

    it('sends it again by itself, under the same number, when nobody knows whether it arrived', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const ride = reporter.ride()
      reporter.addLater(0)
      ride?.lost()
      await clock.advance(99)
      expect(reporter.ride()).toBeUndefined()
      await clock.advance(1)
      expect(sent).toEqual([ride?.report])
      await clock.until(reporter.flush())
      expect(sent.map(({ sequence }) => sequence)).toEqual([1, 2])
    })

    it('has nothing for the way of a generation that is over', async () => {
      const { clock, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      reporter.begin(7)
      expect(reporter.ride()).toBeUndefined()
    })

    it('is not closed before it is back', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const ride = reporter.ride()
      let closed = false
      const closing = reporter.close().then(() => {
        closed = true
      })
      await clock.settle()
      expect(closed).toBe(false)
      ride?.lost()
      await closing
      expect(sent).toEqual([])
    })
  })
})
