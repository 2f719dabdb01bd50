// test-group: io

/** `spillway job-queue` for operators of a job queue. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createSpillway } from 'spillway'
import { redisStore } from 'spillway/redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { jobQueueCommand } from '../src/cli/commands/job-queue.js'
import { UsageError } from '../src/cli/parse-args.js'

const BIN = fileURLToPath(new URL('../dist/bin/spillway.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'queue-command-'))
const FILE = join(folder, 'spillway.yaml')

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  const config = {
    redis: 'env:OUR_REDIS',
    vendors: { openai: { protocol: 'openai', key: 'env:NOT_SET_HERE' } },
    jobQueues: {
      night: { vendor: 'openai', model: 'gpt' },
      day: { vendor: 'openai', model: 'mini' },
    },
  }
  writeFileSync(FILE, JSON.stringify(config))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await redis?.stop()
})

/** A configured job queue with `dead` dead letters and one waiting job. */
async function fill(name: string, dead: number) {
  const store = redisStore({ url: redis.url, commandTimeoutMs: 5_000 })
  const spillway = createSpillway({ store })
  onTestFinished(async () => {
    await spillway.close()
    await store.close()
  })
  await vi.waitUntil(() => store.ready, { timeout: 5_000 })
  spillway.guard('openai', {})
  const queue = spillway.jobQueue<object>(name, { guard: 'openai', attempts: 1, keep: 0 })
  const data = { method: 'POST', path: '/v1/chat/completions', body: { text: 'a secret prompt' } }
  const jobs = Array.from({ length: dead }, () => ({ data, tenant: 'ann' }))
  await queue.addMany(jobs)
  const worker = queue.work(() =>
    Promise.reject(Object.assign(new Error('no\u001b[31m'), { status: 500 })),
  )
  await vi.waitUntil(() => worker.snapshot().dead === dead, { timeout: 10_000 })
  await worker.close()
  const { id } = await queue.add(data, { priority: 'low' })
  return { queue, id }
}

async function run(...args: string[]) {
  let [stdout, stderr] = ['', '']
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text
    return true
  })
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text
    return true
  })
  try {
    const code = await jobQueueCommand.run([...args, '--config', FILE, '--redis', redis.url])
    const done = code === 0
    return { done, stdout, stderr }
  } finally {
    out.mockRestore()
    err.mockRestore()
  }
}

describe('spillway job-queue', () => {
  it('job-queue ls lists all configured job queues without needing secrets', async () => {
    await fill('day', 1)
    const { done, stdout } = await run('ls')
    expect(done).toBe(true)
    expect(stdout).toMatch(/^QUEUE +WAITING +DELAYED +RUNNING +DONE +DEAD +OLDEST +STATE\n/)
    expect(stdout).toMatch(/^day +1 +0 +0 +0 +1 .* open$/m)
    const rows = JSON.parse((await run('ls', '--json')).stdout)
    expect(rows).toHaveLength(2)
    expect(rows[1]).toMatchObject({
      name: 'day',
      vendor: 'openai',
      model: 'mini',
      waiting: 1,
      dead: 1,
    })
  })

  it('job-queue show lists counts and dead letters, but not the requests', async () => {
    const { queue, id } = await fill('night', 3)
    const { stdout } = await run('show', 'night', '--count', '2')
    expect(stdout).toContain('night, of openai')
    expect(stdout).toContain('waiting: critical 0, high 0, normal 0, low 1')
    // All waiting jobs are without a tenant here.
    expect(stdout).toMatch(
      /^TENANT +WAITING +CRITICAL +HIGH +NORMAL +LOW\n\(none\) +1 +0 +0 +0 +1$/m,
    )
    expect(stdout).toContain('Dead letters, 2 of 3, the oldest first:')
    expect(stdout).toMatch(/\d{16} +1 +ann +\w+ +Error: no \[31m/)
    // A vendor must not write control characters to the terminal.
    expect(stdout).not.toContain('\u001b')
    const job = await run('show', 'night', id)
    expect(job.stdout).toMatch(/^path +\/v1\/chat\/completions$/m)
    expect(job.stdout + stdout).not.toContain('secret prompt')
    expect(await run('show', 'night', '1')).toMatchObject({
      done: false,
      stderr: 'night: there is no job 1\n',
    })

    const [first] = await queue.dead()
    const retried = await run('retry', 'night', first!.id)
    expect(retried).toMatchObject({ done: true, stdout: 'night: sent back 1\n' })
    expect(await queue.counts()).toMatchObject({ waiting: 2, dead: 2 })
    expect((await run('retry', 'night', first!.id)).done).toBe(false)

    // There is no terminal to ask for confirmation.
    const refused = await run('drop', 'night')
    expect(refused).toMatchObject({ done: false, stderr: expect.stringContaining('--yes') })
    expect(await queue.counts()).toMatchObject({ dead: 2 })
    const dropped = await run('drop', 'night', '--yes', '--json')
    expect(JSON.parse(dropped.stdout)).toEqual({ queue: 'night', dropped: 2 })
    expect(await run('drop', 'night')).toMatchObject({
      done: false,
      stderr: 'night: no dead letters\n',
    })
  })

  it('job-queue show lists waiting jobs by tenant and escapes tenant names', async () => {
    const { queue } = await fill('whose', 0)
    const odd = '<b>\u202ekcart\u001b[31m'
    const tenants = [odd, odd, ...Array.from({ length: 9 }, (_, index) => `t${index}`)]
    await queue.addMany(tenants.map((tenant) => ({ data: {}, tenant })))
    const { stdout } = await run('show', 'openai/whose')
    expect(stdout).toMatch(/^<b> kcart \[31m +2 +0 +0 +2 +0$/m)
    expect(stdout).toMatch(/^and 3 more, with 3$/m)
    const shown = JSON.parse((await run('show', 'openai/whose', '--json')).stdout)
    expect(shown.tenants).toMatchObject({ exact: true, others: 3 })
    expect(shown.tenants.top[0]).toMatchObject({ tenant: odd, waiting: 2 })
  })

  it('job-queue finds job queues of programs by guard and name, and suggests unknown ones', async () => {
    await fill('by-hand', 1)
    expect((await run('show', 'openai/by-hand')).stdout).toContain('openai/by-hand, of openai')
    await expect(run('show', 'nigt')).rejects.toThrow(
      'unknown job queue "nigt"; did you mean night?',
    )
  })

  it.each([
    [[], 'job-queue: missing action; expected one of: ls, show, retry, drop'],
    [['sohw', 'night'], 'job-queue: unknown action "sohw"; did you mean show?'],
    [['drop'], 'job-queue drop: missing name of the job queue'],
    [['show', 'a', 'b', 'c'], 'unexpected argument "c"; name one job, or all'],
    [['ls', 'night'], 'job-queue ls: unexpected argument "night"'],
  ])('the arguments %j of job-queue are rejected', async (args, message) => {
    await expect(jobQueueCommand.run(args)).rejects.toThrow(new UsageError(message))
  })

  it('job-queue exits with 0, 1, 2 or 3', async () => {
    const codeOf = (...args: string[]) =>
      new Promise<[number | null, string]>((resolve) => {
        const { REDIS_URL: _, ...env } = process.env
        const child = spawn(process.execPath, [BIN, 'job-queue', ...args], { env, cwd: folder })
        let output = ''
        child.stderr.on('data', (text) => {
          output += text
        })
        child.once('close', (code) => resolve([code, output]))
      })
    // One after the other: the command gives up if it cannot connect within five seconds.
    const done = await codeOf('ls', '--redis', redis.url)
    const nothing = await codeOf('retry', 'night', '1', '--redis', redis.url)
    const withoutStore = await codeOf('ls', '--redis', 'redis://127.0.0.1:1')
    const unset = await codeOf('ls')
    expect(done).toEqual([0, ''])
    expect(nothing).toEqual([1, 'night: no dead letter 1\n'])
    expect(withoutStore[0]).toBe(3)
    expect(withoutStore[1]).toMatch(/^the store is unreachable: .*; check REDIS_URL, .* --redis\n$/)
    expect(unset[0]).toBe(1)
    expect(unset[1]).toContain('is missing')
  })
})
