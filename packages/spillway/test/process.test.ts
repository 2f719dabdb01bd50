// test-group: io

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))

/** Runs a program with the built package and returns its output once it has ended by itself. */
async function runProgram(body: string): Promise<string> {
  const program = `
    import {
      createBulkhead, createHedge, createLoadShedder, createRateLimiter, createRetry, createTimeout,
    } from 'spillway/local'
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    ${body}`
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: packageRoot,
    timeout: 100_000,
  })
  return stdout.trim()
}

describe('process that uses Spillway', () => {
  it('a process ends when its work is done although timeouts of an hour were set', async () => {
    const printed = await runProgram(`
      const timeout = createTimeout({ callMs: '1h', firstByteMs: '1h', totalMs: '1h' })
      const bulkhead = createBulkhead({ limit: 1, queue: { size: 9, timeoutMs: '1h' } })
      const limiter = createRateLimiter({ limit: 1, windowMs: '1h' })
      limiter.tryAcquire()
      const calls = [1, 2, 3].map(() => bulkhead.run(() => timeout.run(() => sleep(5))))
      await Promise.all(calls)
      console.log(await limiter.acquireWithin('1m'))`)
    expect(printed).toBe('false')
  })

  it('a process stays alive while a call waits for a Spillway timer', async () => {
    const printed = await runProgram(`
      const timeout = createTimeout({ callMs: 30 })
      const retry = createRetry({ attempts: 2, baseMs: 10 })
      let attempts = 0
      const hang = () => { attempts++; return new Promise(() => {}) }
      await retry.run(() => timeout.run(hang)).catch((error) => console.log(error.code, attempts))
      const limiter = createRateLimiter({ algorithm: 'leaky-bucket', limit: 100, windowMs: 1000 })
      limiter.tryAcquire()
      console.log(await limiter.acquireWithin(100))`)
    expect(printed).toBe('CALL_TIMEOUT 2\ntrue')
  })

  it('a sampling load shedder or an unused hedge does not keep a process alive', async () => {
    const printed = await runProgram(`
      const shedder = createLoadShedder({ cpu: 1, memory: 1, loopUtilization: 1, loopDelayMs: '1m' })
      const hedge = createHedge({ delayMs: '1h' })
      console.log(await shedder.run(() => hedge.run(() => sleep(5).then(() => 'done'))))`)
    expect(printed).toBe('done')
  })

  it('hanging work of a timed-out call does not keep a process alive', async () => {
    const printed = await runProgram(`
      const timeout = createTimeout({ callMs: 10 })
      const bulkhead = createBulkhead({ limit: 1, graceMs: '1h' })
      const hang = () => bulkhead.run(() => timeout.run(() => new Promise(() => {})))
      await hang().catch((error) => console.log(error.code, bulkhead.active))`)
    expect(printed).toBe('CALL_TIMEOUT 1')
  })

  it('health, feature manager and HTTP limits do not keep a process alive', async () => {
    const printed = await runProgram(`
      const { createFeatureManager, createHealth } = await import('spillway')
      const { spillwayHttp } = await import('spillway/http')
      const health = createHealth({ overload: { pressure: () => 0 }, warmUpMs: '1h' })
      health.register('hangs', () => new Promise(() => {}), { timeoutMs: 20 })
      createFeatureManager({ features: { a: { importance: 'low' } }, pressure: () => 0 })
      spillwayHttp({ limits: [{ per: 'ip', limit: 1, windowMs: '1h' }], health }, () => {})
      console.log((await health.ready()).reason)`)
    expect(printed).toBe('warming-up')
  })
})
