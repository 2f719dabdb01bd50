import { describe, expect, it } from 'vitest'
import type { Random } from '../../../core/random.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import { createVirtualClock, type VirtualClock } from '../../../testing/virtual-clock.js'
import { Redial } from './redial.js'

/** A connection that the test opens, breaks and watches. */
class FakeDialed {
  dropped = 0
  connect!: () => void
  fail!: (problem: Error) => void
  readonly #opened = new Promise<void>((resolve, reject) => {
    this.connect = resolve
    this.fail = reject
  })

  constructor(
    readonly client: string,
    readonly atMs: number,
    readonly lost: (problem: unknown) => void,
  ) {}

  open(): Promise<void> {
    return this.#opened
  }

  drop(): void {
    this.dropped++
  }
}

/** A clock that can jump as the time of a starved process does: each timer that is due fires once. */
function createStarvedClock() {
  const clock = createVirtualClock()
  let lateMs = 0
  const due = new Map<() => void, number>()
  return {
    ...clock,
    now: () => clock.now() + lateMs,
    wallMs: () => clock.wallMs() + lateMs,
    schedule(delayMs: number, run: () => void): Timer {
      due.set(run, clock.now() + lateMs + delayMs)
      return { cancel: () => due.delete(run), unref() {}, ref() {} }
    },
    pollTurn: (run: () => void) => clock.pollTurn(run),
    settle: () => clock.settle(),
    starve(ms: number): void {
      lateMs += ms
      for (const [run, dueMs] of [...due]) {
        if (dueMs <= clock.now() + lateMs && due.delete(run)) run()
      }
    },
  }
}

function setup<C extends Clock = VirtualClock>({
  random = () => 0.5,
  clock = createVirtualClock() as Clock as C,
}: {
  random?: Random
  clock?: C
} = {}) {
  const lines: FakeDialed[] = []
  const dial = (lost: (problem: unknown) => void) => {
    const dialed = new FakeDialed(`client ${lines.length + 1}`, clock.now(), lost)
    lines.push(dialed)
    return dialed
  }
  const redial = new Redial<string>({ dial, clock, random })
  return { clock, lines, redial }
}

describe('Redial', () => {
  it('redial exposes a client only while its connection is up', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    expect(redial.client).toBeUndefined()
    lines[0]?.connect()
    await clock.settle()
    expect(redial.client).toBe('client 1')

    lines[0]?.lost(new Error('reset'))
    expect(redial.client).toBeUndefined()
    expect(redial.problem).toEqual(new Error('reset'))
    expect(lines[0]?.dropped).toBe(1)
    await clock.advance(100)
    lines[1]?.connect()
    await clock.settle()
    expect(redial.client).toBe('client 2')
    expect(redial.problem).toBeUndefined()
  })

  it.each([
    { jitter: 'least', chance: 0, pauses: [50, 100, 200, 400, 500, 500, 500] },
    { jitter: 'most', chance: 1, pauses: [100, 200, 400, 800, 1_000, 1_000, 1_000] },
  ])('reconnect pauses grow with the $jitter jitter', async ({ chance, pauses }) => {
    const { clock, lines } = setup({ random: () => chance })
    for (const pauseMs of pauses) {
      await clock.settle()
      const failedMs = clock.now()
      lines.at(-1)?.fail(new Error('refused'))
      await clock.advance(pauseMs)
      expect(lines.at(-1)?.atMs).toBe(failedMs + pauseMs)
    }
  })

  it('pauses are short again after a successful connection', async () => {
    const { clock, lines } = setup()
    for (let attempts = 0; attempts < 5; attempts++) {
      await clock.settle()
      lines.at(-1)?.fail(new Error('refused'))
      await clock.advance(2_000)
    }
    lines.at(-1)?.connect()
    await clock.settle()
    lines.at(-1)?.lost(new Error('reset'))
    const lostMs = clock.now()
    await clock.advance(2_000)
    expect((lines.at(-1)?.atMs ?? 0) - lostMs).toBe(75)
  })

  it('redial gives up a handshake that does not finish within 5 s', async () => {
    const { clock, lines, redial } = setup()
    await clock.advance(5_000)
    expect(lines[0]?.dropped).toBe(1)
    expect(redial.problem).toEqual(new Error('not connected within 5000 ms'))
    await clock.advance(100)
    expect(lines).toHaveLength(2)

    // The late handshake must not become a second connection.
    lines[0]?.connect()
    await clock.settle()
    expect(redial.client).toBeUndefined()
    expect(lines[0]?.dropped).toBe(2)
  })

  it('redial keeps a handshake that finishes right after its process was starved for 10 s', async () => {
    const { clock, lines, redial } = setup({ clock: createStarvedClock() })
    await clock.settle()
    // The timers that became due meanwhile fire first, then the answer of the server is read.
    clock.starve(10_000)
    lines[0]?.connect()
    await clock.settle()
    expect(redial.client).toBe('client 1')
    expect(redial.problem).toBeUndefined()
  })

  it('redial ignores events of earlier connections', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.fail(new Error('refused'))
    await clock.advance(100)
    lines[1]?.connect()
    await clock.settle()
    lines[0]?.lost(new Error('an echo'))
    expect(redial.client).toBe('client 2')
  })

  it('hangUp() replaces the connection once', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.connect()
    await clock.settle()
    redial.hangUp(new Error('silent'))
    redial.hangUp(new Error('silent'))
    expect(lines[0]?.dropped).toBe(1)
    await clock.advance(100)
    expect(lines).toHaveLength(2)
  })

  it('dialNow() starts the next connection attempt at once', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    lines[0]?.fail(new Error('refused'))
    await clock.settle()
    redial.dialNow()
    redial.dialNow()
    await clock.settle()
    expect(lines).toHaveLength(2)
  })

  it('hangUp() also gives up a connection attempt in progress', async () => {
    const { clock, lines, redial } = setup()
    await clock.settle()
    redial.hangUp(new Error('moved'))
    redial.dialNow()
    await clock.settle()
    expect(lines[0]?.dropped).toBe(1)
    expect(lines).toHaveLength(2)
  })

  it('redial never keeps the process alive and does nothing after close() in any state', async () => {
    for (const state of ['dialling', 'open', 'waiting']) {
      const { clock, lines, redial } = setup()
      await clock.settle()
      if (state === 'open') lines[0]?.connect()
      if (state === 'waiting') lines[0]?.fail(new Error('refused'))
      await clock.settle()
      expect(clock.pending).toBe(0)
      redial.close()
      redial.close()
      expect(lines[0]?.dropped).toBe(1)
      lines[0]?.lost(new Error('an echo'))
      await clock.advance(10_000)
      expect(lines).toHaveLength(1)
      expect(redial.client).toBeUndefined()
    }
  })
})
