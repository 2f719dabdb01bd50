import { describe, expect, it } from 'vitest'
import { sleep } from '../../core/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { type Sending, Settler } from './settler.js'

const GATHER_MS = 5

/** `tripMs`: so long a sending is under way. */
function remote(tripMs = 0) {
  const clock = createVirtualClock()
  const sent: Sending[] = []
  const givenBack: string[] = []
  const failures: Error[] = []
  const settler = new Settler(
    clock,
    'pod',
    GATHER_MS,
    async (sending) => {
      const failure = failures.shift()
      if (tripMs > 0) await sleep(clock, tripMs)
      if (failure !== undefined) throw failure
      sent.push({ ...sending, corrections: [...sending.corrections] })
    },
    (lane) => givenBack.push(lane),
  )
  return { clock, settler, sent, givenBack, failures }
}

const back = (delta: number, stamp = 1, id = 'tokens') => ({ id, stamp, delta })

describe('what calls really cost', () => {
  it('is told to a remote store of many calls at once, a moment later', async () => {
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

  it('waits for more also while something is sent', async () => {
    const { clock, settler, sent } = remote(1)
    for (let ms = 0; ms < 60; ms++) {
      settler.add('a', [back(-1)])
      await clock.advance(1)
    }
    await clock.until(settler.drain())
    expect(sent.length).toBeGreaterThan(5)
    expect(sent.length).toBeLessThan(12)
    expect(
      sent.flatMap(({ corrections }) => corrections).reduce((sum, { delta }) => sum + delta, 0),
    ).toBe(-60)
  })

  it('is one sum for each place it was booked at, refunds and debts apart', async () => {
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

  it('is told at once when the books are closed', async () => {
    const { settler, sent } = remote()
    settler.add('a', [back(-10)])
    await settler.drain()
    expect(sent).toHaveLength(1)
    await settler.drain()
    expect(sent).toHaveLength(1)
  })

  it('is told again, under the same number, when the answer was lost; what came in meanwhile follows', async () => {
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

  it('is told to a store in this process before anything else happens', () => {
    const sent: Sending[] = []
    const settler = new Settler(
      createVirtualClock(),
      'pod',
      0,
      (sending) => {
        sent.push(sending)
      },
      () => {},
    )
    settler.add('a', [back(-10)])
    settler.add('a', [back(-1)])
    expect(sent).toHaveLength(2)
  })
})
