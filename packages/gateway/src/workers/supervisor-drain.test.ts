import { describe, expect, it } from 'vitest'
import { createSupervisor } from '../../test/supervisor-kit.js'

describe('drain of a supervisor', () => {
  it('a drain reaches all workers, replaces none, and ends when the last one has ended', async () => {
    const { supervisor, forked, clock, started, isAdminClosed } = createSupervisor()
    await started()
    supervisor.drain({ graceMs: 30_000, delayMs: 0 })
    for (const worker of forked) {
      expect(worker.callsOf('drain')).toEqual([{ graceMs: 30_000, delayMs: 0 }])
      expect(worker.callsOf('workersChanged').at(-1)).toMatchObject({ ready: 0, total: 2 })
    }
    forked[0]?.end(0)
    await clock.advance(5_000)
    expect(isAdminClosed()).toBe(false)
    forked[1]?.end(0)
    await supervisor.ended
    expect(forked).toHaveLength(2)
    expect(isAdminClosed()).toBe(true)
  })

  it('a worker that hangs in a drain is killed after its grace', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    supervisor.drain({ graceMs: 1_000, delayMs: 500 })
    await clock.advance(11_499)
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([true, true])
    await clock.advance(1)
    await supervisor.ended
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
  })

  it('a second stop aborts running requests, and kills a worker that hangs after 5 s', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    supervisor.drain({ graceMs: 3_600_000, delayMs: 0 })
    supervisor.end()
    for (const worker of forked) {
      expect(worker.callsOf('drain').at(-1)).toEqual({ graceMs: 0, delayMs: 0 })
    }
    forked[0]?.end(0)
    await clock.advance(5_000)
    await supervisor.ended
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
  })
})
