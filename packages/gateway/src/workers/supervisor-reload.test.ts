import { describe, expect, it } from 'vitest'
import { applied, createSupervisor, type FakeWorker } from '../../test/supervisor-kit.js'

describe('reloads and reports of a supervisor', () => {
  it('a reload reaches the workers one after the other, and a worker that starts during the reload', async () => {
    const { supervisor, forked, clock, started, write } = createSupervisor()
    await started()
    const finish: (() => void)[] = []
    const reloadable = (worker: FakeWorker | undefined) => {
      if (worker === undefined) return
      worker.answers = {
        reload: () => new Promise((resolve) => finish.push(() => resolve(applied))),
      }
    }
    for (const worker of forked) reloadable(worker)
    write('two')
    const report = supervisor.reload('SIGHUP')
    await clock.settle()
    expect(forked.map((each) => each.callsOf('reload').length)).toEqual([1, 0])
    // The second worker dies before its turn; its replacement starts with the old files.
    forked[1]?.end(null, 'SIGKILL')
    await clock.advance(0)
    const replacement = forked[2]
    reloadable(replacement)
    expect(await replacement?.api.configuration()).toMatchObject({
      contents: [['spillway.yaml', 'one']],
    })
    finish.shift()?.()
    await clock.settle()
    expect(replacement?.callsOf('reload')).toEqual([])
    replacement?.api.ready()
    await clock.settle()
    expect(replacement?.callsOf('reload')).toEqual([
      { cause: 'SIGHUP', contents: [['spillway.yaml', 'two']] },
    ])
    finish.shift()?.()
    expect(await report).toEqual(applied)
    replacement?.end(null, 'SIGKILL')
    await clock.advance(1_000)
    expect(await forked.at(-1)?.api.configuration()).toMatchObject({
      contents: [['spillway.yaml', 'two']],
    })
  })

  it('the count of reloads does not fall when all workers were replaced', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    const reloads = {
      name: 'spillway_config_reloads_total',
      help: 'x',
      type: 'counter',
      values: [{ labels: { result: 'applied' }, value: 1 }],
    }
    for (const worker of forked) {
      worker.answers = { reload: () => applied, metrics: () => [reloads] }
    }
    await supervisor.reload('SIGHUP')
    const counted = 'spillway_config_reloads_total{result="applied"} 1'
    expect(await supervisor.metrics()).toContain(counted)
    for (const worker of forked) worker.end(null, 'SIGKILL')
    await clock.advance(0)
    for (const worker of forked.slice(2)) {
      worker.answers = { metrics: () => [{ ...reloads, values: [] }] }
      worker.api.ready()
    }
    const text = await supervisor.metrics()
    expect(text).toContain(counted)
    expect(text).toContain('spillway_config_generation 2')
  })

  it('a reload does not wait for a worker that ends while it starts', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    for (const worker of forked) worker.answers = { reload: () => applied }
    forked[1]?.end(null, 'SIGKILL')
    await clock.advance(0)
    const report = supervisor.reload('SIGHUP')
    await clock.settle()
    forked[2]?.end(1)
    await clock.settle()
    expect(await report).toEqual(applied)
  })

  it('metrics and snapshots do not wait for a worker that starts', async () => {
    const { supervisor, forked, clock, started } = createSupervisor()
    await started()
    for (const worker of forked) worker.answers = { metrics: () => [], snapshot: () => ({ a: 1 }) }
    forked[0]?.end(null, 'SIGKILL')
    await clock.advance(0)
    expect(await supervisor.metrics()).toContain('spillway_workers{state="ready"} 1')
    expect(await forked[1]?.api.snapshots()).toEqual({
      workers: [
        { worker: 1, pid: 1, state: 'starting' },
        { worker: 2, pid: 1, state: 'ready', a: 1 },
      ],
    })
    expect(forked[2]?.calls).toEqual([])
  })

  it('a worker that replaces another after a refused file starts with the files in force', async () => {
    const { supervisor, forked, clock, started, write } = createSupervisor()
    await started()
    for (const worker of forked) {
      worker.answers = { reload: () => ({ result: 'refused', reason: 'bad' }) }
    }
    write('broken')
    expect(await supervisor.reload('file')).toEqual({ result: 'refused', reason: 'bad' })
    forked[0]?.end(1)
    await clock.advance(0)
    expect(await forked[2]?.api.configuration()).toMatchObject({
      contents: [['spillway.yaml', 'one']],
    })
  })

  it('a worker gets the decisions of the other workers from the supervisor', async () => {
    const { forked, started } = createSupervisor()
    await started()
    const records = [{ pod: 'two', id: 1, at: 1, tookMs: 1 }]
    for (const worker of forked) {
      worker.answers.decisions = () => ({ cursor: `boot-${worker.slot}.2.2`, seen: 4, records })
    }
    const answer = await forked[0]?.api.decisions({ 2: 'boot-2.1.1' })
    expect(answer).toEqual({ cursors: { 2: 'boot-2.2.2' }, seen: 4, records })
    expect(forked[0]?.callsOf('decisions')).toEqual([])
    expect(forked[1]?.callsOf('decisions')).toEqual([{ cursor: 'boot-2.1.1' }])
  })
})
