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

  it('close() during a batch in flight sends the rest right after it', async () => {
    const { clock, settler, sent } = remote(1)
    settler.add('a', [back(-10)])
    await clock.advance(GATHER_MS)
    settler.add('a', [back(-1)])
    await clock.until(settler.close())
    expect(sent).toHaveLength(2)
    expect(clock.now()).toBe(GATHER_MS + 2)
  })

  it('settlements of an in-process store that replies later do not wait for a timer', async () => {
    const { clock, settler, sent } = inProcess(() => Promise.resolve(0))
    settler.add('a', [back(-10)])
    settler.add('a', [back(-1)])
    await clock.settle()
    expect(sent.map(({ corrections }) => corrections)).toEqual([[back(-10)], [back(-1)]])
    expect(clock.now()).toBe(0)
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
    expect(sent[1]?.sequence).toBeGreaterThan(sent[0]?.sequence as number)
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

  it('a batch that cannot be delivered is given up after 5 attempts with growing pauses', async () => {
    const { clock, settler, sent, givenBack, failures } = remote()
    for (let i = 0; i < 5; i++) failures.push(new Error('down'))
    settler.add('a', [back(-10)])
    await clock.advance(GATHER_MS + 100 + 200 + 300 + 399)
    expect(failures).toHaveLength(1)
    await clock.advance(1)
    expect(failures).toEqual([])
    expect([sent, givenBack]).toEqual([[], []])
    settler.add('a', [back(-1)])
    await clock.advance(GATHER_MS)
    expect(sent).toHaveLength(1)
  })

  it('a sender that fails synchronously is tried again', async () => {
    const { clock, settler, sent } = inProcess((_, attempt) => {
      if (attempt === 1) throw new Error('down')
      return 0
    })
    settler.add('a', [back(-10)])
    await clock.advance(100)
    expect(sent).toHaveLength(2)
    expect(sent[0]).toBe(sent[1])
  })

  it('a batch has at most 256 corrections, and the rest follows', async () => {
    const { clock, settler, sent } = remote()
    const many = Array.from({ length: 300 }, (_, stamp) => back(-1, stamp))
    settler.add('a', many)
    await clock.until(settler.close())
    expect(sent.map(({ corrections }) => corrections.length)).toEqual([256, 44])
  })

  it('only a batch that frees units says so', async () => {
    const { clock, settler, givenBack } = remote()
    settler.add('a', [back(5)])
    settler.add('b', [back(5), back(-1, 2)])
    await clock.advance(GATHER_MS)
    expect(givenBack).toEqual(['b'])
  })

  it('an in-process store frees units in a microtask, so the settling call ends first', async () => {
    const { settler, freed } = inProcess(() => 0)
    settler.add('a', [back(-10)])
    settler.add('b', [back(10)])
    expect(freed).toEqual([])
    await Promise.resolve()
    expect(freed).toEqual(['a'])
  })

  it('an in-process store that replies later gets the next batch after its reply', async () => {
    let reply = (_: number) => {}
    const { settler, sent } = inProcess(
      () =>
        new Promise((resolve) => {
          reply = resolve
        }),
    )
    settler.add('a', [back(-10)])
    settler.add('a', [back(-1)])
    settler.add('a', [back(-2)])
    expect(sent).toHaveLength(1)
    let closed = false
    const closing = settler.close().then(() => {
      closed = true
    })
    reply(0)
    await new Promise((resolve) => setImmediate(resolve))
    expect(sent.map(({ corrections }) => corrections)).toEqual([[back(-10)], [back(-3)]])
    expect(closed).toBe(false)
    reply(0)
    await closing
  })

  it('a lane has one timer that wakes further pods, and closing cancels it', async () => {
    const { clock, settler, sent } = inProcess(() => 50_000)
    settler.add('a', [back(-10)])
    await clock.advance(20)
    settler.add('a', [back(-1)])
    settler.add('b', [back(-1)])
    await clock.advance(29)
    expect(sent).toHaveLength(3)
    await clock.advance(1)
    expect(sent.at(-1)).toMatchObject({ lane: 'a', corrections: [] })
    await settler.close()
    const { length } = sent
    settler.add('a', [back(-1)])
    await clock.advance(1_000)
    expect(sent).toHaveLength(length + 1)
  })

  it('each sender of a process has its own name', () => {
    const [one, other] = [remote().settler.pod, remote().settler.pod]
    expect(one).toMatch(/^pod\/\d+$/)
    expect(other).toMatch(/^pod\/\d+$/)
    expect(other).not.toBe(one)
  })
})

/** A sender to a store in this process. */
function inProcess(send: (batch: SettlementBatch, attempt: number) => number | Promise<number>) {
  const clock = createVirtualClock()
  const sent: SettlementBatch[] = []
  const freed: string[] = []
  const settler = new SettlementSender({
    clock,
    pod: 'pod',
    collectMs: 0,
    send: (batch) => send(batch, sent.push(batch)),
    onFreed: (lane) => freed.push(lane),
  })
  return { clock, settler, sent, freed }
}
