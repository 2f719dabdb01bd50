import { describe, expect, it } from 'vitest'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { type SettlementBatch, SettlementSender } from './settlement-sender.js'

const GATHER_MS = 5

/** `roundTripMs`: duration of each round trip. */
function remote(roundTripMs = 0) {
  const clock = createVirtualClock()
  const sent: SettlementBatch[] = []
  const givenBack: string[] = []
  const failures: Error[] = []
  const settler = new SettlementSender({
    clock,
    pod: 'pod',
    collectMs: GATHER_MS,
    send: async (sending) => {
      const failure = failures.shift()
      if (roundTripMs > 0) await sleep(clock, roundTripMs)
      if (failure !== undefined) throw failure
      sent.push({ ...sending, corrections: [...sending.corrections] })
      return 0
    },
    onFreed: (lane) => givenBack.push(lane),
  })
  return { clock, settler, sent, givenBack, failures }
}

const back = (delta: number, stamp = 1, id = 'tokens') => ({ id, stamp, delta })

describe('settlement sender', () => {
  it('settlement sender sends the corrections of many calls to a remote store in one batch', async () => {
    const { clock, settler, sent, givenBack } = remote()
    settler.add('a', [back(-10)])
    await clock.advance(GATHER_MS - 1)
    settler.add('a', [back(-5)])
    settler.add('b', [back(-1)])
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent.map(({ lane, corrections }) => ({ lane, corrections }))).toEqual([
      { lane: 'a', corrections: [back(-15)] },
      { lane: 'b', corrections: [back(-1)] },
    ])
    expect(givenBack).toEqual(['a', 'b'])
  })

  it('settlement sender keeps collecting while a batch is in flight', async () => {
    const { clock, settler, sent } = remote(1)
    for (let ms = 0; ms < 60; ms++) {
      settler.add('a', [back(-1)])
      await clock.advance(1)
    }
    await clock.until(settler.close())
    expect(sent.length).toBeGreaterThan(5)
    expect(sent.length).toBeLessThan(12)
    expect(
      sent.flatMap(({ corrections }) => corrections).reduce((sum, { delta }) => sum + delta, 0),
    ).toBe(-60)
  })

  it('settlement sender sums corrections per booking, with refunds and debts apart', async () => {
    const { clock, settler, sent } = remote()
    settler.add('a', [back(-10, 1)])
    settler.add('a', [back(-10, 2), back(4, 1)])
    settler.add('a', [back(-1, 1, 'requests'), back(3, 1), back(-2, 1)])
    await clock.advance(GATHER_MS)
    expect(sent[0]?.corrections).toEqual([
      back(-12, 1),
      back(-10, 2),
      back(7, 1),
      back(-1, 1, 'requests'),
    ])
  })

  it('drain() sends pending corrections at once', async () => {
    const { settler, sent } = remote()
    settler.add('a', [back(-10)])
    await settler.close()
    expect(sent).toHaveLength(1)
    await settler.close()
    expect(sent).toHaveLength(1)
  })

  it('a batch whose reply was lost is sent again under the same number before later ones', async () => {
    const { clock, settler, sent, failures } = remote()
    failures.push(new Error('no reply'))
    settler.add('a', [back(-10)])
    await clock.advance(GATHER_MS)
    settler.add('a', [back(-1)])
    expect(sent).toEqual([])
    await clock.advance(1_000)
    expect(sent.map(({ corrections }) => corrections)).toEqual([[back(-10)], [back(-1)]])
    const [first, second] = sent.map(({ sequence }) => sequence)
    expect(first).toBeLessThan(second as number)
  })

  it('settlement sender sends to an in-process store at once', () => {
    const sent: SettlementBatch[] = []
    const settler = new SettlementSender({
      clock: createVirtualClock(),
      pod: 'pod',
      collectMs: 0,
      send: (batch) => {
        sent.push(batch)
        return 0
      },
      onFreed: () => {},
    })
    settler.add('a', [back(-10)])
    settler.add('a', [back(-1)])
    expect(sent).toHaveLength(2)
  })

  it('settlement sender sends an empty batch when the store wants to wake a further pod', async () => {
    const clock = createVirtualClock()
    const sent: SettlementBatch[] = []
    const settler = new SettlementSender({
      clock,
      pod: 'pod',
      collectMs: GATHER_MS,
      send: async (batch) => {
        sent.push(batch)
        return sent.length < 3 ? 50_000 : 0
      },
      onFreed: () => {},
    })
    settler.add('a', [back(-10)])
    await clock.advance(300)
    expect(sent.map(({ corrections }) => corrections)).toEqual([[back(-10)], [], []])
    await settler.close()
    expect(clock.pending).toBe(0)
  })
})
