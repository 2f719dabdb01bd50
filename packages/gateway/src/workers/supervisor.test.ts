import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import type { ReloadReport } from '../reload/reloads.js'
import type { FileContents, PortName, SupervisorApi } from './protocol.js'
import type { SupervisedWorker } from './supervised-worker.js'
import { Supervisor } from './supervisor.js'

/** A worker process that does what the test says. */
class FakeWorker {
  slot: number | undefined
  readonly api: SupervisorApi
  /** Calls of the supervisor, in order. */
  readonly calls: [name: string, argument: unknown][] = []
  state = 'starting'
  readyAtMs: number | undefined
  metrics = []
  isOverloaded = false
  isAlive = true
  pid = 1
  /** The answers to calls by name. */
  answers: Record<string, () => unknown> = {}
  #onEnd: (how: string) => void = () => {}

  get hasStarted(): boolean {
    return this.readyAtMs !== undefined
  }

  constructor(api: SupervisorApi) {
    this.api = api
  }

  readonly channel = {
    call: async (name: string, argument: unknown) => {
      if (!this.isAlive) throw new Error('the process has ended')
      this.calls.push([name, argument])
      // As a process that does not listen to messages yet.
      if (!this.hasStarted) return new Promise(() => {})
      return this.answers[name]?.()
    },
  }

  onEnd(listener: (how: string) => void): void {
    this.#onEnd = listener
  }

  drain(options: object): void {
    this.state = 'draining'
    this.calls.push(['drain', options])
  }

  kill(): void {
    this.end(null, 'SIGKILL')
  }

  end(code: number | null, signal: string | null = null): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.state = 'ended'
    this.#onEnd(signal ?? `exit code ${code}`)
  }

  callsOf(name: string): unknown[] {
    return this.calls.filter(([each]) => each === name).map(([, argument]) => argument)
  }
}

/** A connection that the supervisor has accepted. */
class FakeConnection extends EventEmitter {
  readonly written: string[] = []
  readonly bytesRead = 0
  isDestroyed = false
  isRead = false

  resume(): void {
    this.isRead = true
  }

  destroySoon(): void {
    this.destroy()
  }

  end(text: string): void {
    this.written.push(text)
  }

  destroy(): void {
    this.isDestroyed = true
  }
}

function setUp({ workers = 2, keepsSpare = false } = {}) {
  const clock = createVirtualClock()
  const forked: FakeWorker[] = []
  const said: string[] = []
  let files: FileContents = [['spillway.yaml', 'one']]
  const onConnection: Partial<Record<PortName, (socket: Socket) => void>> = {}
  const closed: PortName[] = []
  const listening = { failure: undefined as Error | undefined }
  let forkError: Error | undefined
  const supervisor = new Supervisor(
    {
      workers,
      keepsSpare,
      clock,
      fork: (api) => {
        if (forkError !== undefined) throw forkError
        const worker = new FakeWorker(api)
        forked.push(worker)
        return worker as unknown as SupervisedWorker
      },
      readFiles: () => files,
      listen: async (port, listener) => {
        if (port === 'data' && listening.failure !== undefined) throw listening.failure
        onConnection[port] = listener
        return { port: port === 'admin' ? 8_081 : 8_080, close: () => void closed.push(port) }
      },
      say: (text) => said.push(text),
    },
    files,
  )
  return {
    clock,
    supervisor,
    forked,
    said,
    listening,
    closed,
    connect: (port: PortName, socket: FakeConnection) =>
      onConnection[port]?.(socket as unknown as Socket),
    isAdminClosed: () => closed.includes('admin'),
    failForks: (error: Error | undefined) => {
      forkError = error
    },
    write: (text: string) => {
      files = [['spillway.yaml', text]]
    },
    async started() {
      const started = supervisor.start()
      await clock.settle()
      for (const worker of forked) worker.api.ready()
      return started
    },
  }
}

const applied: ReloadReport = {
  result: 'applied',
  generation: 2,
  added: [],
  changed: [],
  removed: [],
  afterRestart: [],
}

describe('supervisor of workers', () => {
  it('start resolves when every worker is ready, and every worker knows how many are', async () => {
    const { supervisor, forked, clock } = setUp()
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

  it('every worker learns how many workers are overloaded, and one that ends does not count', async () => {
    const { forked, started, clock } = setUp()
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

  it('a worker gets the decisions of the other workers from the supervisor', async () => {
    const { forked, started } = setUp()
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

  it('a failure of the first start ends the supervisor with its reason, and no worker is left', async () => {
    const { supervisor, forked, clock, isAdminClosed } = setUp()
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

  it('a killed worker is replaced at once in its slot, and the others know of it', async () => {
    const { forked, clock, started, said } = setUp()
    await started()
    forked[0]?.end(null, 'SIGKILL')
    expect(forked[1]?.callsOf('workersChanged').at(-1)).toMatchObject({ ready: 1 })
    await clock.advance(0)
    expect(forked).toHaveLength(3)
    expect(forked[2]?.slot).toBe(1)
    expect(said.join('')).toContain('worker 1 (pid 1) ended with SIGKILL')
    forked[2]?.api.ready()
    expect(forked[1]?.callsOf('workersChanged').at(-1)).toMatchObject({ ready: 2 })
  })

  it('workers that crash after every start end the gateway with a message after six rounds', async () => {
    const { supervisor, forked, clock, started } = setUp()
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
    const { forked, clock, started, said, failForks } = setUp()
    await started()
    failForks(new Error('spawn ENOMEM'))
    forked[0]?.end(null, 'SIGKILL')
    await clock.advance(0)
    expect(said.at(-1)).toContain('worker 1 could not be started: spawn ENOMEM; the next attempt')
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, true])
    failForks(undefined)
    await clock.advance(10_000)
    expect(forked[2]?.slot).toBe(1)
  })

  it('giving up closes the admin port, also if no worker is left to be killed', async () => {
    const { supervisor, forked, clock, started, isAdminClosed } = setUp()
    await started()
    for (let crashes = 0; crashes < 100 && forked.some((each) => each.isAlive); crashes++) {
      for (const worker of forked) worker.end(7)
      await clock.advance(10_000)
    }
    await expect(supervisor.ended).rejects.toThrow('giving up')
    expect(isAdminClosed()).toBe(true)
  })

  it('a worker that crashes after every start does not end the gateway while another serves', async () => {
    const { supervisor, forked, clock, started } = setUp()
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

  it('a reload reaches the workers one after the other, and one that started meanwhile', async () => {
    const { supervisor, forked, clock, started, write } = setUp()
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
    const { supervisor, forked, clock, started } = setUp()
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
    const { supervisor, forked, clock, started } = setUp()
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
    const { supervisor, forked, clock, started } = setUp()
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
    const { supervisor, forked, clock, started, write } = setUp()
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

  it('a drain reaches all workers, replaces none, and ends when the last one has ended', async () => {
    const { supervisor, forked, clock, started, isAdminClosed } = setUp()
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
    const { supervisor, forked, clock, started } = setUp()
    await started()
    supervisor.drain({ graceMs: 1_000, delayMs: 500 })
    await clock.advance(11_499)
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([true, true])
    await clock.advance(1)
    await supervisor.ended
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
  })

  it('a second stop breaks off what runs, and kills a worker that hangs after 5 s', async () => {
    const { supervisor, forked, clock, started } = setUp()
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

  it('a connection to the admin port is answered with 503 while no worker is ready', async () => {
    const { supervisor, forked, clock, connect } = setUp()
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

  it('a data port in use ends the start with its error, and no worker is left', async () => {
    const { forked, started, listening } = setUp()
    listening.failure = Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
    await expect(started()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(forked.map(({ isAlive }) => isAlive)).toEqual([false, false])
  })

  it('connections go to the workers in turn, and the supervisor closes its copy of those that were taken', async () => {
    const { clock, forked, started, connect } = setUp()
    await started()
    const connections = Array.from({ length: 4 }, () => new FakeConnection())
    for (const worker of forked) worker.answers = { serve: () => true }
    for (const connection of connections) connect('data', connection)
    await clock.settle()
    expect(forked.map((each) => each.callsOf('serve').length)).toEqual([2, 2])
    expect(connections.map(({ isDestroyed }) => isDestroyed)).toEqual([true, true, true, true])
  })

  it('a connection that its worker had not taken when it was killed goes to another worker', async () => {
    const { clock, forked, started, connect } = setUp()
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
    const { clock, forked, started, connect } = setUp()
    await started()
    const [first, second] = forked as [FakeWorker, FakeWorker]
    first.answers = { serve: () => false }
    second.answers = { serve: () => true }
    connect('data', new FakeConnection())
    await clock.settle()
    expect([first, second].map((each) => each.callsOf('serve').length)).toEqual([1, 1])
  })

  it('a worker that hangs gets no second connection, and another worker takes the rest', async () => {
    const { clock, forked, started, connect } = setUp()
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
    const { clock, forked, started, connect } = setUp()
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
    const { clock, forked, started, connect } = setUp({ workers: 1 })
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
    const { clock, forked, started, connect } = setUp()
    await started()
    const connection = new FakeConnection()
    const notReceived = () => {
      throw new Error('it has no free file descriptor')
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
    const { clock, forked, started, connect } = setUp()
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
    const { clock, supervisor, forked, started, connect, closed } = setUp()
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

  it('a spare process replaces a killed worker with the files in force, and another one is kept', async () => {
    const { clock, supervisor, forked, started, write } = setUp({ keepsSpare: true })
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
    const { clock, supervisor, forked, started, said } = setUp({ keepsSpare: true })
    await started()
    forked[2]?.end(1)
    await clock.advance(9_999)
    expect(forked).toHaveLength(3)
    await clock.advance(1)
    expect(forked).toHaveLength(4)
    expect(said).toEqual([])
    for (const worker of forked) worker.answers = { metrics: () => [] }
    expect(await supervisor.metrics()).toContain('spillway_worker_restarts_total 0')
  })

  it('a drain ends the spare process and starts no other', async () => {
    const { clock, supervisor, forked, started } = setUp({ keepsSpare: true })
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
