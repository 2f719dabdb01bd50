import { describe, expect, it } from 'vitest'
import { createSupervisor, FakeConnection, type FakeWorker } from '../../test/supervisor-kit.js'

describe('connections of a gateway with workers', () => {
  it('a connection to the admin port is answered with 503 while no worker is ready', async () => {
    const { supervisor, forked, clock, connect } = createSupervisor()
    void supervisor.start()
    await clock.settle()
    const connection = new FakeConnection()
    connect('admin', connection)
    await clock.settle()
    expect(connection.written[0]).toMatch(/^HTTP\/1\.1 503 .*\r\n\r\n\{"status":"starting"\}$/s)
    // Otherwise the supervisor would not notice that the client closes it.
    expect(connection.isRead).toBe(true)
    await clock.advance(30_000)
    expect(connection.isDestroyed).toBe(true)
    forked[1]?.api.ready()
    connect('admin', new FakeConnection())
    expect(forked[1]?.callsOf('serve')).toEqual([{ port: 'admin', isLast: false }])
  })

  it('a connection to the admin port that no worker takes does not keep the supervisor running', async () => {
    const { supervisor, forked, started, clock, connect } = createSupervisor()
    await started()
    supervisor.drain({ graceMs: 1_000, delayMs: 0 })
    for (const { answers } of forked) answers.serve = () => false
    const connection = new FakeConnection()
    connect('admin', connection)
    await clock.settle()
    expect(connection.written[0]).toMatch(/^HTTP\/1\.1 503 /)
    expect(connection.keepsProcess).toBe(false)
  })

  it('workers count as not started until clients can connect to the data port', async () => {
    const { forked, started, listening, clock } = createSupervisor()
    let open = () => {}
    listening.mayOpen = new Promise((resolve) => {
      open = resolve
    })
    const starting = started()
    await clock.settle()
    const lastState = () => forked[0]?.callsOf('workersChanged').at(-1)
    expect(lastState()).toMatchObject({ ready: 2, started: false })
    open()
    await starting
    expect(lastState()).toMatchObject({ ready: 2, started: true })
  })

  it('a data port in use ends the start with its error, and no worker is left', async () => {
    const { forked, started, listening } = createSupervisor()
    listening.failure = Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
    await expect(started()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
  })

  it('connections go to the workers in turn, and the supervisor closes its copy of those that were taken', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const connections = Array.from({ length: 4 }, () => new FakeConnection())
    for (const worker of forked) worker.answers = { serve: () => true }
    for (const connection of connections) connect('data', connection)
    await clock.settle()
    expect(forked.map((each) => each.callsOf('serve').length)).toEqual([2, 2])
    expect(connections.map(({ isDestroyed }) => isDestroyed)).toEqual([true, true, true, true])
  })

  it('a connection that its worker had not taken when it was killed goes to another worker', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const connection = new FakeConnection()
    let lose: (error: Error) => void = () => {}
    const [first, second] = forked as [FakeWorker, FakeWorker]
    first.answers = { serve: () => new Promise((_, reject) => (lose = reject)) }
    second.answers = { serve: () => true }
    connect('data', connection)
    await clock.settle()
    expect(second.callsOf('serve')).toEqual([])
    first.end(null, 'SIGKILL')
    lose(new Error('the process has ended'))
    await clock.settle()
    expect(second.callsOf('serve')).toEqual([{ port: 'data', isLast: false }])
    expect(connection.isDestroyed).toBe(true)
  })

  it('a connection that a drained worker does not take goes to another worker', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const [first, second] = forked as [FakeWorker, FakeWorker]
    first.answers = { serve: () => false }
    second.answers = { serve: () => true }
    connect('data', new FakeConnection())
    await clock.settle()
    expect([first, second].map((each) => each.callsOf('serve').length)).toEqual([1, 1])
  })

  it('a worker that hangs gets no second connection, and another worker takes the rest', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const [hanging, working] = forked as [FakeWorker, FakeWorker]
    hanging.answers = { serve: () => new Promise(() => {}) }
    working.answers = { serve: () => true }
    const connections = Array.from({ length: 10 }, () => new FakeConnection())
    for (const connection of connections) connect('data', connection)
    await clock.settle()
    expect(hanging.callsOf('serve')).toHaveLength(1)
    expect(working.callsOf('serve')).toHaveLength(9)
    expect(connections.filter(({ isDestroyed }) => isDestroyed)).toHaveLength(9)
  })

  it('a worker that hangs gets at most two connections to the admin port, and another worker takes the rest', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const [hanging, working] = forked as [FakeWorker, FakeWorker]
    hanging.answers = { serve: () => new Promise(() => {}) }
    working.answers = { serve: () => true }
    for (let i = 0; i < 5; i++) connect('admin', new FakeConnection())
    await clock.settle()
    expect(hanging.callsOf('serve')).toHaveLength(2)
    expect(working.callsOf('serve')).toHaveLength(3)
  })

  it('connections that wait for a worker that hangs are served by its replacement', async () => {
    const { clock, forked, started, connect } = createSupervisor({ workers: 1 })
    await started()
    let lose: (error: Error) => void = () => {}
    const [hanging] = forked as [FakeWorker]
    hanging.answers = { serve: () => new Promise((_, reject) => (lose = reject)) }
    const connections = Array.from({ length: 3 }, () => new FakeConnection())
    for (const connection of connections) connect('data', connection)
    await clock.settle()
    expect(hanging.callsOf('serve')).toHaveLength(1)
    hanging.end(null, 'SIGKILL')
    lose(new Error('the process has ended'))
    await clock.advance(0)
    const replacement = forked[1] as FakeWorker
    replacement.answers = { serve: () => true }
    replacement.api.ready()
    await clock.settle()
    expect(replacement.callsOf('serve')).toHaveLength(3)
    expect(connections.map(({ isDestroyed }) => isDestroyed)).toEqual([true, true, true])
  })

  it('a connection that no worker has a file descriptor for is offered again after a second', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    const connection = new FakeConnection()
    const notReceived = () => {
      throw new Error('the worker has no free file descriptor')
    }
    for (const worker of forked) worker.answers = { serve: notReceived }
    connect('data', connection)
    await clock.settle()
    const offers = () => forked.map((each) => each.callsOf('serve').length)
    expect(offers()).toEqual([1, 1])
    await clock.advance(999)
    expect(offers()).toEqual([1, 1])
    for (const worker of forked) worker.answers = { serve: () => true }
    await clock.advance(1)
    expect(offers().toSorted()).toEqual([1, 2])
    expect(connection.isDestroyed).toBe(true)
    await clock.advance(10_000)
    expect(offers().toSorted()).toEqual([1, 2])
  })

  it('a connection waits while all workers are being replaced', async () => {
    const { clock, forked, started, connect } = createSupervisor()
    await started()
    for (const worker of forked) worker.end(null, 'SIGKILL')
    await clock.advance(0)
    const connection = new FakeConnection()
    connect('data', connection)
    await clock.settle()
    expect(connection).toMatchObject({ isDestroyed: false, written: [] })
    const replacement = forked[3] as FakeWorker
    replacement.answers = { serve: () => true }
    replacement.api.ready()
    await clock.settle()
    expect(replacement.callsOf('serve')).toEqual([{ port: 'data', isLast: false }])
  })

  it('a drain closes the data port after its delay, and workers take what was accepted before', async () => {
    const { clock, supervisor, forked, started, connect, closed } = createSupervisor()
    await started()
    for (const worker of forked) worker.answers = { serve: () => true }
    supervisor.drain({ graceMs: 30_000, delayMs: 1_000 })
    await clock.advance(999)
    expect(closed).toEqual([])
    connect('data', new FakeConnection())
    await clock.settle()
    expect(forked[0]?.callsOf('serve')).toEqual([{ port: 'data', isLast: true }])
    await clock.advance(1)
    expect(closed).toEqual(['data'])
  })
})
