import { describe, expect, it } from 'vitest'
import { createSupervisor } from '../../test/supervisor-kit.js'

describe('supervisor of workers', () => {
  it('start resolves when every worker is ready, and every worker receives the number of ready workers', async () => {
    const { supervisor, forked, clock } = createSupervisor()
    let isStarted = false
    const started = supervisor.start().then((ports) => {
      isStarted = true
      return ports
    })
    await clock.settle()
    expect(forked.map(({ slot }) => slot)).toEqual([1, 2])
    forked[0]?.api.ready()
    await clock.settle()
    expect(isStarted).toBe(false)
    forked[1]?.api.ready()
    expect(await started).toEqual({ port: 8_080, adminPort: 8_081 })
    for (const worker of forked) {
      expect(worker.callsOf('workersChanged').at(-1)).toEqual({
        ready: 2,
        total: 2,
        overloaded: 0,
        started: true,
      })
    }
  })

  it('every worker receives the number of overloaded workers, without those that have ended', async () => {
    const { forked, started, clock } = createSupervisor()
    await started()
    const seen = () => forked[1]?.callsOf('workersChanged').at(-1)
    forked[0]?.api.overloaded(true)
    expect(seen()).toMatchObject({ ready: 2, overloaded: 1 })
    forked[1]?.api.overloaded(true)
    expect(seen()).toMatchObject({ ready: 2, overloaded: 2 })
    forked[0]?.api.overloaded(false)
    expect(seen()).toMatchObject({ ready: 2, overloaded: 1 })
    forked[0]?.api.overloaded(true)
    forked[0]?.end(1)
    await clock.settle()
    expect(seen()).toMatchObject({ ready: 1, overloaded: 1 })
  })

  it('a failure of the first start ends the supervisor with its reason, and no worker is left', async () => {
    const { supervisor, forked, clock, isAdminClosed } = createSupervisor()
    const started = supervisor.start()
    started.catch(() => {})
    await clock.settle()
    forked[0]?.api.failed({ code: 'EADDRINUSE', message: 'port 8080 is in use' })
    await expect(started).rejects.toMatchObject({
      code: 'EADDRINUSE',
      message: 'port 8080 is in use',
    })
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
    expect(forked).toHaveLength(2)
    expect(isAdminClosed()).toBe(true)
  })

  it('a killed worker is replaced at once in its slot, and the other workers are informed', async () => {
    const { forked, clock, started, printed } = createSupervisor()
    await started()
    forked[0]?.end(null, 'SIGKILL')
    expect(forked[1]?.callsOf('workersChanged').at(-1)).toMatchObject({ ready: 1 })
    await clock.advance(0)
    expect(forked).toHaveLength(3)
    expect(forked[2]?.slot).toBe(1)
    expect(printed.join('')).toContain('worker 1 (pid 1) ended with SIGKILL')
    forked[2]?.api.ready()
    expect(forked[1]?.callsOf('workersChanged').at(-1)).toMatchObject({ ready: 2 })
  })

  it('workers that crash after every start end the gateway with a message after six rounds', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    const ended = supervisor.ended.then(
      () => 'ended',
      (error: Error) => error.message,
    )
    for (let crashes = 0; crashes < 100 && forked.some((each) => each.isAlive); crashes++) {
      for (const worker of forked) worker.end(7)
      await clock.advance(10_000)
    }
    expect(forked).toHaveLength(12)
    expect(await ended).toBe(
      'workers ended 12 times in a row soon after their start, the last one with exit code 7; giving up',
    )
  })

  it('a worker whose start throws is tried again, while the others serve', async () => {
    const { forked, clock, started, printed, failForks } = createSupervisor()
    await started()
    failForks(new Error('spawn ENOMEM'))
    forked[0]?.end(null, 'SIGKILL')
    await clock.advance(0)
    expect(printed.at(-1)).toContain(
      'worker 1 could not be started: spawn ENOMEM; the next attempt',
    )
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, true])
    failForks(undefined)
    await clock.advance(10_000)
    expect(forked[2]?.slot).toBe(1)
  })

  it('a supervisor that gives up closes the admin port, even without a worker to kill', async () => {
    const { supervisor, forked, clock, started, isAdminClosed } = createSupervisor()
    await started()
    for (let crashes = 0; crashes < 100 && forked.some((each) => each.isAlive); crashes++) {
      for (const worker of forked) worker.end(7)
      await clock.advance(10_000)
    }
    await expect(supervisor.ended).rejects.toThrow('giving up')
    expect(isAdminClosed()).toBe(true)
  })

  it('a worker that crashes after every start does not end the gateway while another serves', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    let isOver = false
    supervisor.ended.then(
      () => {
        isOver = true
      },
      () => {
        isOver = true
      },
    )
    for (let crashes = 0; crashes < 20; crashes++) {
      forked.at(crashes === 0 ? 0 : -1)?.end(1)
      await clock.advance(10_000)
    }
    expect(isOver).toBe(false)
    expect(forked[1]?.isAlive).toBe(true)
    expect(forked.length).toBeGreaterThan(20)
  })
})
