// test-group: io

/** A guard leaves nothing that keeps its process alive. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.js'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Runs a program with the built package and returns its output once it has ended by itself. */
async function runProgram(where: string, body: string): Promise<string> {
  const program = `
    import { createSpillway } from 'spillway'
    import { redisStore } from 'spillway/redis'
    import { memoryStore } from 'spillway/shared'
    const store = ${where === 'memory' ? 'memoryStore()' : `redisStore({ url: '${server.url}', commandTimeoutMs: '2s' })`}
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    while (store.ready === false) await sleep(5)
    const options = {
      userLimits: [{ per: 'user', limit: 100, windowMs: '1h' }],
      queue: { size: 100, timeoutMs: '2h' },
      breaker: { failureRate: 0.9, openMs: '1h' },
      limits: [{ limit: 5, windowMs: '1h' }],
      pace: { limit: 50, windowMs: '1h' },
      concurrency: { limit: 2, graceMs: '1h' },
      timeout: { callMs: '1h' },
      retry: { attempts: 3, baseMs: '1h', jitter: 'none' },
    }
    const name = 'guard-' + process.pid
    process.on('unhandledRejection', (error) => console.log('unhandled', error))
    ${body}`
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: packageRoot,
    timeout: 100_000,
  })
  return stdout.trim()
}

describe.each(['memory', 'redis'])('process with a guard, store: %s', (where) => {
  it('a process ends after close() with calls queued, delayed, running or paused', async () => {
    const printed = await runProgram(
      where,
      `
      const spillway = createSpillway({ store })
      const guard = spillway.guard(name, options)
      const fates = []
      const run = (fn, own) => guard.run(fn, own).then(
        (value) => fates.push(value),
        (error) => fates.push(error.code ?? error.message),
      )
      await run(() => 'answered', { user: 'u' })
      await run(() => { throw Object.assign(new Error('429'), { status: 429, headers: { 'retry-after': '50' } }) },
        { lane: 'b', idempotent: false })
      const retrying = run(() => { throw Object.assign(new Error('retried'), { status: 503 }) })
      const calls = [retrying]
      const until = async (isSo) => { while (!isSo()) await sleep(1) }
      await until(() => guard.snapshot().attempts === 3 && guard.snapshot().active === 0)
      let finish
      calls.push(run(() => new Promise((resolve) => { finish = () => resolve('drained') })))
      await until(() => guard.snapshot().active === 1)
      calls.push(run(({ signal }) => new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)))))
      await until(() => guard.snapshot().active === 2)
      calls.push(run(() => 'never'))
      const closed = spillway.close({ graceMs: 400 })
      finish()
      await closed
      await Promise.all(calls)
      await store.close()
      console.log(fates.sort().join(' '))`,
    )
    expect(printed).toBe('429 SHUTTING_DOWN SHUTTING_DOWN answered drained retried')
  })

  it('a process ends although the work of a timed-out call hangs', async () => {
    const printed = await runProgram(
      where,
      `
      const spillway = createSpillway({ store })
      const guard = spillway.guard(name, { ...options, timeout: { callMs: 20 }, retry: { attempts: 1 } })
      await guard.run(() => new Promise(() => {})).catch((error) => console.log(error.code))
      console.log(guard.snapshot().active)
      await spillway.close()
      await store.close()`,
    )
    expect(printed).toBe('CALL_TIMEOUT\n1')
  })
})

describe('process with a guard on the memory store', () => {
  it('a process with an idle guard ends without close()', async () => {
    const printed = await runProgram(
      'memory',
      `
      const guard = createSpillway({ store }).guard(name, options)
      console.log(await guard.run(() => 'answered', { user: 'u' }))
      const abort = new AbortController()
      const waiting = [1, 2, 3, 4, 5].map(() => guard.run(() => 'answered', { signal: abort.signal }))
      setTimeout(() => abort.abort(new Error('left')), 20)
      console.log((await Promise.allSettled(waiting)).map(({ value, reason }) => value ?? reason.message).join(' '))`,
    )
    expect(printed).toBe('answered\nanswered answered answered answered left')
  })
})
