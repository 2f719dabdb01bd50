import { describe, expect, it } from 'vitest'
import {
  type BreakerSpec,
  FAILURE,
  REPEATED_FAILURE,
  REPEATED_SUCCESS,
  SLOW,
  SUCCESS,
} from '../../../store/breaker-spec.js'
import type { BreakerView } from '../../../store/port.js'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import { createReporter, fewCallsOf, type Report, Reporter } from './reporter.js'

interface PendingReply {
  resolve(): void
  reject(error: Error): void
}

/** A store that answers at once unless it is down. */
function setup({ sliceMs = Number.POSITIVE_INFINITY } = {}) {
  const clock = createVirtualClock()
  const sent: Report[] = []
  const store = { down: false }
  let numbers = 0
  const reporter = new Reporter({
    clock,
    flushMs: () => 100,
    staleMs: 1_000,
    sliceMs,
    nextNumber: () => ++numbers,
    traffic: () => ({ inFlight: [0, 1] }),
    send(report) {
      sent.push(report)
      if (store.down) throw new Error('down')
    },
  })
  return { clock, sent, store, reporter }
}

describe('breaker reporter', () => {
  it('reporter continues after the store has failed once', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    reporter.add(1)
    reporter.add(1)
    reporter.endProbe('probe', 'success')
    store.down = false
    await clock.until(reporter.flush())
    expect(sent).toMatchObject([
      { sequence: 1, outcomes: [[1, 1]], probes: [] },
      { sequence: 1, outcomes: [[1, 1]], probes: [] },
      { sequence: 2, outcomes: [[1, 1]], probes: [['probe', 0]] },
    ])
  })

  it('a new generation drops old outcomes but keeps probe results', async () => {
    const { clock, sent, store, reporter } = setup()
    store.down = true
    reporter.add(1)
    reporter.add(1)
    reporter.addLater(0)
    reporter.endProbe('probe', 'success')
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

  it('reporter keeps at most 512 outcomes while the store is unreachable', async () => {
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

  it('close() sends the last report once, whether or not it arrives', async () => {
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

  it('a report without an answer is sent again every 100 ms until it is staleMs old', async () => {
    const { clock, sent, store, reporter } = setup()
    await clock.advance(10_000)
    store.down = true
    reporter.add(1)
    await clock.advance(5_000)
    expect(sent).toHaveLength(11)
    expect(reporter.isIdle).toBe(true)
    store.down = false
    reporter.add(1)
    expect(sent).toHaveLength(12)
    expect(sent.at(-1)).toMatchObject({ sequence: 2, outcomes: [[1, 1]] })
  })

  it('a success counts in the slice of the window in which its call began, a failure in the current one', async () => {
    const { clock, sent, reporter } = setup({ sliceMs: 1_000 })
    reporter.ended('success', false, 999)
    reporter.ended('success', false, 1_000)
    reporter.ended('success', false, 3_500)
    reporter.ended('slow', false, 3_500)
    reporter.ended('failure', false, 3_500)
    await clock.until(reporter.flush())
    expect(sent.flatMap(({ outcomes }) => outcomes)).toEqual([
      [SUCCESS, 1],
      [SUCCESS, 1, 1],
      [SUCCESS, 1, 3],
      [SLOW, 1, 3],
      [FAILURE, 1],
    ])
  })

  it('only successes, failures and slow calls are reported, and repeated ones apart', async () => {
    const { clock, sent, reporter } = setup({ sliceMs: 1_000 })
    reporter.ended('throttled', false, 0)
    reporter.ended('ignored', false, 0)
    expect(reporter.isIdle).toBe(true)
    reporter.ended('success', true, 5_000)
    reporter.ended('slow', true, 5_000)
    expect(sent).toEqual([])
    reporter.ended('failure', true, 5_000)
    await clock.until(reporter.flush())
    expect(sent.flatMap(({ outcomes }) => outcomes)).toEqual([
      [REPEATED_SUCCESS, 2],
      [REPEATED_FAILURE, 1],
    ])
  })

  it('a call that seems to end before it began counts in the current slice', () => {
    const { sent, reporter } = setup({ sliceMs: 1_000 })
    reporter.ended('slow', false, -0.25)
    expect(sent.map(({ outcomes }) => outcomes)).toEqual([[[SLOW, 1]]])
  })

  it('a success waits for flushMs and is then sent', async () => {
    const { clock, sent, reporter } = setup()
    reporter.addLater(0)
    expect(reporter.isIdle).toBe(false)
    await clock.advance(99)
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent).toMatchObject([{ sequence: 1, outcomes: [[0, 1]] }])
    expect(reporter.isIdle).toBe(true)
    reporter.sendNow()
    expect(sent[1]).toMatchObject({ sequence: 2, outcomes: [] })
  })

  it('the same generation keeps the outcomes that wait', async () => {
    const { clock, sent, reporter } = setup()
    reporter.begin(3)
    reporter.addLater(0)
    reporter.begin(3)
    await clock.until(reporter.flush())
    expect(sent).toMatchObject([{ generation: 3, outcomes: [[0, 1]] }])
  })

  it('one report is in flight at a time, and what ends meanwhile goes with the next', async () => {
    const clock = createVirtualClock()
    const sent: Report[] = []
    const replies: (() => void)[] = []
    const reporter = createReporter({
      clock,
      spec: { windowUs: 10_000_000, windowCalls: 0, minimumCalls: 10 } as BreakerSpec,
      flushMs: 100,
      view: () => ({ calls: sent.length === 0 ? 99 : 100 }) as BreakerView,
      traffic: () => ({ inFlight: [0, 1] }),
      send(report) {
        sent.push(report)
        return new Promise((resolve) => replies.push(resolve))
      },
    })
    // The window holds fewer than 100 calls, so a success does not wait.
    reporter.ended('success', false, 1_000)
    expect(sent).toMatchObject([{ outcomes: [[SUCCESS, 1, 1]] }])
    reporter.ended('failure', false, 0)
    reporter.ended('success', false, 0)
    expect([sent.length, reporter.isIdle]).toEqual([1, false])
    replies[0]?.()
    await clock.settle()
    expect(sent.map(({ outcomes }) => outcomes.length)).toEqual([1, 2])
    expect(sent[1]?.sequence).toBe((sent[0]?.sequence ?? 0) + 1)
    replies[1]?.()
    await clock.settle()
    reporter.ended('success', false, 0)
    expect(sent).toHaveLength(2)
    let closed = false
    const closing = reporter.close().then(() => {
      closed = true
    })
    await clock.settle()
    expect([sent.length, closed]).toEqual([3, false])
    replies[2]?.()
    await closing
    expect(reporter.isIdle).toBe(true)
  })

  it('a report is sent again for as long as the window, or for a minute without one', async () => {
    const attempts = async (windowUs: number) => {
      const clock = createVirtualClock()
      let sends = 0
      const reporter = createReporter({
        clock,
        spec: { windowUs, windowCalls: 100, minimumCalls: 10 } as BreakerSpec,
        flushMs: 100,
        view: () => ({ calls: 1_000 }) as BreakerView,
        traffic: () => ({ inFlight: [0, 0] }),
        send() {
          sends++
          return Promise.reject(new Error('down'))
        },
      })
      reporter.add(FAILURE)
      await clock.advance(100_000)
      return sends
    }
    expect(await attempts(5_000_000)).toBe(51)
    expect(await attempts(0)).toBe(601)
  })

  it('while a report is sent again, further outcomes wait for its reply', async () => {
    const clock = createVirtualClock()
    const sent: number[] = []
    const replies: PendingReply[] = []
    let numbers = 0
    const reporter = new Reporter({
      clock,
      flushMs: () => 100,
      staleMs: 1_000,
      sliceMs: Number.POSITIVE_INFINITY,
      nextNumber: () => ++numbers,
      traffic: () => ({ inFlight: [0, 1] }),
      send({ sequence }) {
        sent.push(sequence)
        return new Promise<void>((resolve, reject) => replies.push({ resolve, reject }))
      },
    })
    reporter.add(FAILURE)
    replies[0]?.reject(new Error('down'))
    await clock.advance(100)
    expect(sent).toEqual([1, 1])
    reporter.add(FAILURE)
    expect(sent).toEqual([1, 1])
    replies[1]?.resolve()
    await clock.settle()
    expect(sent).toEqual([1, 1, 2])
  })

  it('successes are reported at once up to 100 calls or twice minimumCalls, and at most a window of calls', () => {
    const few = (windowCalls: number, minimumCalls: number) =>
      fewCallsOf({ windowCalls, minimumCalls } as BreakerSpec)
    expect([few(0, 10), few(0, 50), few(0, 51), few(0, 200)]).toEqual([100, 100, 102, 400])
    expect([few(20, 10), few(120, 10), few(300, 200)]).toEqual([20, 100, 300])
  })

  it('reporter without outcomes sends nothing', async () => {
    const { clock, sent, reporter } = setup()
    await reporter.flush()
    await clock.advance(10_000)
    await reporter.close()
    expect(sent).toEqual([])
  })

  describe('piggybacked breaker reports', () => {
    it('reporter hands over outcomes that waited half of their time, and none twice', async () => {
      const { clock, sent, reporter } = setup()
      expect(reporter.piggyback()).toBeUndefined()
      reporter.addLater(0)
      await clock.advance(49)
      expect(reporter.piggyback()).toBeUndefined()
      reporter.addLater(0)
      await clock.advance(1)
      const pending = reporter.piggyback()
      expect(pending?.report).toEqual({
        sequence: 1,
        generation: 0,
        outcomes: [[0, 2]],
        inFlight: [0, 1],
        probes: [],
      })
      expect(reporter.piggyback()).toBeUndefined()
      pending?.arrived()
      await clock.advance(1_000)
      expect(sent).toEqual([])
      expect(reporter.isIdle).toBe(true)
    })

    it('reporter sends nothing during a piggybacked report, and urgent outcomes right after it', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const pending = reporter.piggyback()
      reporter.addLater(0)
      reporter.add(1)
      expect(sent).toEqual([])
      pending?.arrived()
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

    it('outcomes recorded during a piggybacked report wait for the next one', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const pending = reporter.piggyback()
      reporter.addLater(0)
      await clock.advance(5)
      pending?.arrived()
      await clock.advance(50)
      expect(reporter.piggyback()?.report).toMatchObject({ sequence: 2, outcomes: [[0, 1]] })
      expect(sent).toEqual([])
    })

    it('a piggybacked report with an unknown fate is sent again under the same number', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const pending = reporter.piggyback()
      reporter.addLater(0)
      pending?.lost()
      await clock.advance(99)
      expect(reporter.piggyback()).toBeUndefined()
      await clock.advance(1)
      expect(sent).toEqual([pending?.report])
      await clock.until(reporter.flush())
      expect(sent.map(({ sequence }) => sequence)).toEqual([1, 2])
    })

    it('reporter piggybacks nothing of an earlier generation', async () => {
      const { clock, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      reporter.begin(7)
      expect(reporter.piggyback()).toBeUndefined()
    })

    it('close() waits for a piggybacked report', async () => {
      const { clock, sent, reporter } = setup()
      reporter.addLater(0)
      await clock.advance(50)
      const pending = reporter.piggyback()
      let closed = false
      const closing = reporter.close().then(() => {
        closed = true
      })
      await clock.settle()
      expect(closed).toBe(false)
      pending?.lost()
      await closing
      expect(sent).toEqual([])
    })
  })
})
