// test-group: io

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { systemClock, turnMs } from './clock.js'

describe('system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('system clock rounds a fraction of a millisecond up, so a timer is never early', () => {
    const run = vi.fn()
    systemClock.schedule(1.7, run)
    vi.advanceTimersByTime(1)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('system clock waits again when Node fires a timer too early', () => {
    const run = vi.fn()
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    systemClock.schedule(10, run)
    now.mockReturnValue(1_009.2)
    vi.advanceTimersByTime(10)
    expect(run).not.toHaveBeenCalled()
    now.mockReturnValue(1_010.2)
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
    now.mockRestore()
  })

  it('system clock can wait longer than setTimeout allows', () => {
    const run = vi.fn()
    const days = 40 * 86_400_000
    systemClock.schedule(days, run)
    vi.advanceTimersByTime(days - 1)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('system clock runs an overdue timer at once without a warning', () => {
    // Not a spy: Vitest restores spies once more after the file, and that would leave the faked `setTimeout` in place.
    const { setTimeout } = globalThis
    const recorded = vi.fn(setTimeout)
    globalThis.setTimeout = recorded as unknown as typeof setTimeout
    const run = vi.fn()
    systemClock.schedule(-2, run)
    systemClock.schedule(Number.NaN, run)
    globalThis.setTimeout = setTimeout
    expect(recorded.mock.calls.map(([, delayMs]) => delayMs)).toEqual([0, 0])
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(2)
  })

  it('a cancelled timer does not fire', () => {
    const run = vi.fn()
    systemClock.schedule(10, run).cancel()
    vi.advanceTimersByTime(100)
    expect(run).not.toHaveBeenCalled()
  })
})

describe('system clock pollTurn()', () => {
  it('pollTurn() runs after all data that had arrived when a timer called it was read', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [far] = (await once(server, 'connection')) as [Socket]
    const seen: string[] = []
    near.on('data', () => Promise.resolve().then(() => seen.push('read')))
    await new Promise<void>((resolve) => {
      systemClock.schedule(1, () => {
        far.write('arrives while this process is busy')
        const lastMs = performance.now() + 5
        while (performance.now() < lastMs);
        systemClock.pollTurn(() => {
          seen.push('turn')
          resolve()
        })
      })
    })
    near.destroy()
    server.close()
    expect(seen).toEqual(['read', 'turn'])
  })
})

describe('the time of a turn of the event loop', () => {
  it('turnMs() stays the same while promises settle and is later in the next turn', async () => {
    const firstMs = turnMs(systemClock)
    for (let step = 0; step < 100; step++) await undefined
    expect(turnMs(systemClock)).toBe(firstMs)
    await new Promise((resolve) => setImmediate(resolve))
    expect(turnMs(systemClock)).toBeGreaterThan(firstMs)
  })

  it('turnMs() of a virtual clock is its time, even if that changes within one turn', async () => {
    const clock = createVirtualClock()
    const seen: number[] = []
    clock.schedule(5, () => seen.push(turnMs(clock)))
    clock.schedule(9, () => seen.push(turnMs(clock)))
    await clock.advance(10)
    expect(seen).toEqual([5, 9])
  })
})
