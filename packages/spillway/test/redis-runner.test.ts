// test-group: io, slow

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../src/core/time/clock.js'
import {
  createScriptRunner,
  type Script,
  type ScriptRunner,
} from '../src/store/redis/connection/runner.js'
import { StoreFailure } from '../src/store/store-failure.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { connectTestRedis } from './test-connection.js'
import { DRIVERS, type DriverName, driversToTest } from './topologies.js'

function script(name: string, text: string): Script {
  return { name, sha: createHash('sha1').update(text).digest('hex'), text }
}

const ADD = script('add', "return redis.call('INCRBY', KEYS[1], ARGV[1])")
const ADD_AND_FAIL = script(
  'addAndFail',
  "redis.call('INCR', KEYS[1]) return redis.error_reply('NOSENSE at all')",
)
const SHAPES = script('shapes', "return { 1, 'two', { 3, ARGV[1] }, false }")
const COUNT_TO = script('countTo', 'local n = 0 for i = 1, ARGV[1] do n = i end return n')
const SLOW = script('slow', "redis.call('INCR', KEYS[1]) while true do end")

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(() => server.send('FLUSHALL'))

interface ConnectOptions {
  url?: string
  commandTimeoutMs?: number
}

/** A runner with its own connection, closed after the test. */
async function connectWith(
  driver: DriverName,
  { url = server.url, commandTimeoutMs = 5_000 }: ConnectOptions,
): Promise<ScriptRunner> {
  const client = connectTestRedis({ url, driver: DRIVERS[driver] })
  const runner = createScriptRunner(client, { commandTimeoutMs, clock: systemClock })
  onTestFinished(() => runner.close())
  await vi.waitUntil(() => client.ready, { interval: 2, timeout: 100_000 })
  return runner
}

async function failureOf(promise: Promise<unknown>): Promise<StoreFailure> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (failure: unknown) => failure,
  )
  expect(error).toBeInstanceOf(StoreFailure)
  return error as StoreFailure
}

/** Blocks the event loop, as parsing a large JSON document would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Blocks this process until the server has the value, which another thread sees. */
async function startWitness(port: number) {
  const shared = new Int32Array(new SharedArrayBuffer(4))
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { port, shared } = workerData
    const socket = require('node:net').connect(port, '127.0.0.1', () => parentPort.postMessage('ready'))
    parentPort.once('message', ([key, value]) => {
      const ask = () => socket.write('GET ' + key + '\\r\\n')
      socket.on('data', (reply) => {
        if (!String(reply).includes('\\r\\n' + value + '\\r\\n')) return void setTimeout(ask, 1)
        Atomics.store(shared, 0, 1)
        Atomics.notify(shared, 0)
      })
      ask()
    })`
  const worker = new Worker(program, { eval: true, workerData: { port, shared } })
  onTestFinished(async () => void (await worker.terminate()))
  await once(worker, 'message')
  return {
    blockUntil(key: string, value: string) {
      worker.postMessage([key, value])
      Atomics.wait(shared, 0, 0)
    },
  }
}

describe.each(driversToTest())('script runner on %s', (driver) => {
  const connect = (options: ConnectOptions = {}) => connectWith(driver, options)

  it('runner returns integers, strings and arrays as the script returned them', async () => {
    const runner = await connect()
    expect(await runner.run(SHAPES, [], ['ü'])).toEqual([1, 'two', [3, 'ü'], null])
    expect(await runner.run(ADD, ['n'], [41])).toBe(41)
  })

  it('runner sends the script text once after SCRIPT FLUSH and then the SHA again', async () => {
    const runner = await connect()
    await runner.run(ADD, ['n'], [1])
    await server.send('SCRIPT', 'FLUSH')
    const before = runner.commands
    expect(await runner.run(ADD, ['n'], [1])).toBe(2)
    expect(runner.commands - before).toBe(2)
    expect(await runner.run(ADD, ['n'], [1])).toBe(3)
    expect(runner.commands - before).toBe(3)
  })

  it('runner does not rerun a script that failed on the server', async () => {
    const runner = await connect()
    const first = await failureOf(runner.run(ADD_AND_FAIL, ['n'], []))
    const second = await failureOf(runner.run(ADD_AND_FAIL, ['n'], []))
    expect([first.kind, second.kind]).toEqual(['server', 'server'])
    expect(second.message).toBe('addAndFail: NOSENSE at all')
    expect(await server.send('GET', 'n')).toBe('2')
  })

  it('a command fails after its deadline while the server hangs, and its late reply is dropped', async () => {
    const runner = await connect({ commandTimeoutMs: 1_500 })
    await runner.run(ADD, ['n'], [1])
    server.pause()
    onTestFinished(() => server.resume())
    const startMs = performance.now()
    const failure = await failureOf(runner.run(ADD, ['n'], [10]))
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(1_499)
    expect(failure).toMatchObject({
      kind: 'ambiguous',
      message: 'no reply within 1500 ms (commandTimeoutMs)',
    })

    server.resume()
    const before = runner.commands
    // The late command has run once, and its reply is not mistaken for this one's.
    expect(await runner.run(ADD, ['n'], [100])).toBe(111)
    expect(runner.commands - before).toBe(1)
  })

  it('a command is ambiguous when its connection breaks', async () => {
    const other = await startRedis()
    onTestFinished(() => other.stop())
    const runner = await connect({ url: other.url, commandTimeoutMs: 5_000 })
    const underWay = [1, 2, 3].map(() => failureOf(runner.run(SLOW, ['n'], [])))
    await nextTurn()
    await other.kill()
    for (const failure of await Promise.all(underWay)) expect(failure.kind).toBe('ambiguous')
  })

  it('a command fails at once as not-sent while there is no connection', async () => {
    const client = connectTestRedis({ url: 'redis://127.0.0.1:1', driver: DRIVERS[driver] })
    const runner = createScriptRunner(client, { commandTimeoutMs: 100, clock: systemClock })
    onTestFinished(() => runner.close())
    expect((await failureOf(runner.run(ADD, ['n'], [1]))).kind).toBe('not-sent')
    await vi.waitUntil(() => client.problem !== undefined)
    const failure = await failureOf(runner.run(ADD, ['n'], [1]))
    expect(failure.kind).toBe('not-sent')
    expect(failure.message).toContain('no connection to Redis: connect ECONNREFUSED')
    expect(runner.commands).toBe(0)
  })

  it('runner reconnects after a server restart', async () => {
    const first = await startRedis()
    const runner = await connect({ url: first.url })
    await runner.run(ADD, ['n'], [5])
    await first.kill()
    expect((await failureOf(runner.run(ADD, ['n'], [1]))).kind).toMatch(/not-sent|ambiguous/)
    const second = await startRedis({ port: first.port })
    onTestFinished(() => second.stop())
    const reply = await vi.waitUntil(() => runner.run(ADD, ['n'], [1]).catch(() => undefined), {
      interval: 5,
      timeout: 100_000,
    })
    expect(reply).toBe(1)
  })

  describe('script runner after a blocked event loop', () => {
    it('a busy process reads the replies that have arrived before it declares a timeout', async () => {
      const runner = await connect({ commandTimeoutMs: 200 })
      // On a busy machine the first command may exceed its deadline.
      const warmUp = async () => (await runner.run(ADD, ['n'], [0]).catch(() => undefined)) === 0
      await vi.waitUntil(warmUp)
      const witness = await startWitness(server.port)
      const underWay = Array.from({ length: 40 }, () => runner.run(ADD, ['n'], [1]))
      await nextTurn()
      witness.blockUntil('n', '40')
      block(300)
      expect(await Promise.all(underWay)).toHaveLength(40)
    })

    it('command timeout starts when the command is written', async () => {
      const runner = await connect({ commandTimeoutMs: 800 })
      await runner.run(COUNT_TO, [], [0])
      // Written only when the event loop is free again, and not answered at once.
      const underWay = runner.run(COUNT_TO, [], [1_000_000])
      block(900)
      expect(await underWay).toBe(1_000_000)
    })
  })

  it('close() waits for commands in flight and refuses later ones', async () => {
    const runner = await connect()
    const underWay = runner.run(ADD, ['n'], [1])
    const closed = runner.close()
    expect((await failureOf(runner.run(ADD, ['n'], [1]))).kind).toBe('not-sent')
    expect(await underWay).toBe(1)
    await closed
    await vi.waitUntil(async () => (await connections()) === 1, { interval: 5 })
  })
})

/** Number of connections as the server reports it, including the one of this test. */
async function connections(): Promise<number> {
  const list = await server.send('CLIENT', 'LIST')
  return String(list).trim().split('\n').length
}

describe('application-provided client', () => {
  it("an application's client is used as it is and left open", async () => {
    const client = createClient({ url: server.url, disableOfflineQueue: true })
    client.on('error', () => {})
    onTestFinished(() => client.destroy())
    const adapter = connectTestRedis({ client })
    const runner = createScriptRunner(adapter, { commandTimeoutMs: 5_000, clock: systemClock })
    expect(adapter.ready).toBe(false)
    await client.connect()
    expect(await runner.run(SHAPES, [], ['x'])).toEqual([1, 'two', [3, 'x'], null])
    await runner.close()
    expect(await client.ping()).toBe('PONG')
    expect(client.listenerCount('error')).toBe(1)
  })

  it("an application's client without an error listener gets one, so errors do not end the process", () => {
    const client = createClient({ url: server.url, disableOfflineQueue: true })
    connectTestRedis({ client })
    expect(() => client.emit('error', new Error('connection lost'))).not.toThrow()
  })
})

describe.each(['redis', 'ioredis'])('process with a %s connection', (driver) => {
  const packageRoot = fileURLToPath(new URL('..', import.meta.url))

  async function runProgram(body: string): Promise<string> {
    const program = `
      import { systemClock as clock } from './dist/core/time/clock.js'
      import { createKeys } from './dist/store/keys.js'
      import { connectRedis } from './dist/store/redis/connection/connect.js'
      import { createScriptRunner } from './dist/store/redis/connection/runner.js'
      const client = connectRedis({ url: process.argv[1], driver: '${driver}' }, { access: createKeys('sw'), warn() {} })
      const runner = createScriptRunner(client, { commandTimeoutMs: 5_000, clock })
      ${body}`
    const args = ['--input-type=module', '--eval', program, server.url]
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: packageRoot,
      timeout: 100_000,
    })
    return stdout.trim()
  }

  it('a process ends after close() and leaves no handle', async () => {
    const printed = await runProgram(`
      while (!client.ready) await new Promise((resolve) => setTimeout(resolve, 5))
      console.log(await runner.run({ name: 'one', sha: '0', text: 'return 1' }, [], []))
      await runner.close()
      await new Promise(setImmediate)
      const handles = process.getActiveResourcesInfo()
      console.log(handles.filter((name) => /TCP|Timeout/.test(name)).length)`)
    expect(printed).toBe('1\n0')
  })

  it('a process ends when the runner is closed while connecting', async () => {
    const programs = ['runner.close()', 'setImmediate(() => runner.close())'].map(runProgram)
    expect(await Promise.all(programs)).toEqual(['', ''])
  })
})
