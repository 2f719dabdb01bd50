import { describe, expect, it } from 'vitest'
import { applied, createSupervisor, type FakeWorker } from '../../test/supervisor-kit.js'

describe('spare process of a supervisor', () => {
  it('a spare process replaces a killed worker with the files in force, and another one is kept', async () => {
    const { clock, supervisor, forked, started, write } = createSupervisor({ keepsSpare: true })
    await started()
    expect(forked.map(({ slot }) => slot)).toEqual([1, 2, undefined])
    for (const worker of forked) worker.answers = { reload: () => applied }
    write('two')
    await supervisor.reload('SIGHUP')
    const spare = forked[2] as FakeWorker
    expect(spare.calls).toEqual([])
    const configured = spare.api.configuration()
    forked[0]?.end(null, 'SIGKILL')
    await clock.advance(0)
    expect(await configured).toEqual({ slot: 1, contents: [['spillway.yaml', 'two']] })
    expect(forked).toHaveLength(3)
    spare.api.ready()
    expect(forked.map(({ slot }) => slot)).toEqual([1, 2, 1, undefined])
  })

  it('a spare process that ends is replaced after 10 s, and costs no worker and no restart', async () => {
    const { clock, supervisor, forked, started, printed } = createSupervisor({ keepsSpare: true })
    await started()
    forked[2]?.end(1)
    await clock.advance(9_999)
    expect(forked).toHaveLength(3)
    await clock.advance(1)
    expect(forked).toHaveLength(4)
    expect(printed).toEqual([])
    for (const worker of forked) worker.answers = { metrics: () => [] }
    expect(await supervisor.metrics()).toContain('spillway_worker_restarts_total 0')
  })

  it('a drain ends the spare process and starts no other', async () => {
    const { clock, supervisor, forked, started } = createSupervisor({ keepsSpare: true })
    await started()
    supervisor.drain({ graceMs: 1_000, delayMs: 0 })
    expect(forked[2]?.isAlive).toBe(false)
    forked[0]?.end(0)
    forked[1]?.end(0)
    await supervisor.ended
    await clock.advance(60_000)
    expect(forked).toHaveLength(3)
  })
})
