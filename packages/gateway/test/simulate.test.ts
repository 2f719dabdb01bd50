// test-group: io, slow

/** The commands `spillway simulate` and `spillway plan` as users start them. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { SCENARIOS } from '@spillway/simulator'
import { afterAll, describe, expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'
import { loadConfig } from '../src/config/load.js'
import { runHere } from './command-kit.js'

const BIN = fileURLToPath(new URL('../dist/bin/spillway.js', import.meta.url))
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'simulate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Starts the command as a process in the folder; `runHere` is the same command without the start-up time. */
async function spillway(...args: string[]) {
  try {
    const options = { cwd: folder, maxBuffer: 64 * 1_024 ** 2 }
    return { code: 0, ...(await run(process.execPath, [BIN, ...args], options)) }
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string }
  }
}

function write(name: string, content: unknown): string {
  const file = join(folder, name)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

describe('spillway simulate', () => {
  it('simulate --list lists the scenarios', async () => {
    const { stdout, code } = await runHere('simulate', '--list')
    expect(code).toBe(0)
    expect(stdout.match(/^ {2}[a-z-]+ {2}/gm)).toHaveLength(SCENARIOS.length)
  })

  it('simulate prints the checks, writes a report and exits with 0', async () => {
    const { stdout, code } = await spillway('simulate', 'burst', '--report', 'burst.html')
    expect(code).toBe(0)
    expect(stdout).toContain('All promises hold with Spillway.')
    expect(stdout).toContain('✓ of the batch, served')
    expect(readFileSync(join(folder, 'burst.html'), 'utf8')).toContain('</html>')
  })

  it('simulate --json prints identical output for the same seed', async () => {
    const [one, same, other] = [
      await spillway('simulate', 'burst', '--json', '--seed', '7'),
      await runHere('simulate', 'burst', '--json', '--seed', '7'),
      await runHere('simulate', 'burst', '--json', '--seed', '8'),
    ]
    expect(JSON.parse(one.stdout)).toMatchObject({ name: 'burst', seed: 7, passed: true })
    expect(same.stdout === one.stdout).toBe(true)
    expect(other.stdout === one.stdout).toBe(false)
  })

  it('simulate runs a configuration without its secrets and exits with 1 where it does not hold', async () => {
    const config = write('spillway.yaml', {
      vendors: {
        first: { protocol: 'openai', key: 'env:SOME_KEY_THAT_IS_NOT_SET' },
        second: {
          protocol: 'anthropic',
          key: 'env:ANOTHER',
          queue: { size: 600, timeoutMs: '5s' },
          concurrency: { limit: 50 },
        },
      },
    })
    const unguarded = await spillway('simulate', 'burst', '--config', config)
    expect(unguarded.code).toBe(1)
    expect(unguarded.stdout).toContain('NOT all promises hold')
    const guarded = await runHere('simulate', 'burst', '-c', config, '--vendor', 'second')
    expect(guarded.code).toBe(0)
  })

  it('simulate runs a scenario file and names every mistake in it', async () => {
    const scenario = {
      name: 'mine',
      title: 'Mine',
      story: 'Two seconds.',
      durationMs: '2s',
      vendor: { serviceMs: 50, capacity: 10 },
      guard: { concurrency: { limit: 10 } },
      clients: [{ name: 'users', rps: 20, timeoutMs: '1s' }],
      expect: [{ metric: 'served', atLeast: 0.9 }],
    }
    expect((await runHere('simulate', write('mine.json', scenario))).code).toBe(0)
    const wrong = { ...scenario, durtionMs: 1, clients: [{ name: 'users', timeoutMs: '1s' }] }
    const { code, stderr } = await runHere('simulate', write('wrong.json', wrong))
    expect(code).toBe(1)
    expect(stderr).toContain("durtionMs: unknown option; did you mean 'durationMs'?")
    expect(stderr).toContain('clients[0]: must have one of rps')
  })

  it.each([
    [['simulate'], 'simulate: missing scenario'],
    [['simulate', 'overlod'], 'did you mean overload?'],
    [['simulate', 'burst', '--seeds', '1'], 'did you mean --seed?'],
    [['simulate', 'burst', '--pods', 'many'], '--pods: must be a whole number'],
    [['simulate', 'nowhere.yaml'], 'cannot be read (ENOENT)'],
    [['plan', '--limit', '5 a minute', '--latency', '1s'], '--limit: must be like 500/1m'],
    [['plan', '--limit', '5/1m'], 'missing --latency'],
  ])('the arguments %j exit with 2', async (args, words) => {
    const { code, stderr } = await runHere(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(words)
  })
})

describe('spillway simulate search', () => {
  const guard = {
    queue: { size: 2_000, timeoutMs: '60s' },
    timeout: { callMs: '1s' },
    retry: { attempts: 4, budget: 1, baseMs: 50, maxQueueWaitMs: '60s' },
  }
  const scenario = {
    name: 'stuck',
    title: 'Stuck',
    story: 'Retries keep the vendor overloaded.',
    durationMs: '10s',
    vendor: { serviceMs: { min: 80, max: 120 }, capacity: usualOrLong(3, 5) },
    guard,
    clients: [{ name: 'users', rps: usualOrLong(24, 40), timeoutMs: '60s' }],
    expect: [],
  }
  const recover = usualOrLong('1s', '3s')
  const range = ['--max-duration', '2s', '--recover-within', recover, '--max-size', '4']

  it('simulate search finds the boundary in threads and recommends a line, the same for the same seed', async () => {
    const file = write('stuck.json', scenario)
    const one = await spillway('simulate', 'search', file, ...range, '--json')
    expect(one.code).toBe(1)
    const { stable, changes } = JSON.parse(one.stdout)
    expect(stable).toBe(false)
    expect(changes[0].yaml).toMatch(/^[a-z]+: \{ .* \}$/)
    const same = await runHere('simulate', 'search', file, ...range, '--json')
    expect(same.stdout).toBe(one.stdout)
  })

  it('simulate search uses the guard of a configuration and exits with 0 if the fleet recovers', async () => {
    const config = write('calm.yaml', {
      vendors: {
        calm: { protocol: 'openai', key: 'env:K', concurrency: { limit: 5 }, queue: { size: 10 } },
      },
    })
    const file = write('stuck.json', scenario)
    const { code, stdout } = await runHere('simulate', 'search', file, '-c', config, ...range)
    expect(stdout).toContain('The fleet recovers from every trigger in this range.')
    expect(code).toBe(0)
  })

  it('simulate search stops on SIGINT with exit code 130', async () => {
    const file = write('stuck.json', scenario)
    const child = spawn(process.execPath, [BIN, 'simulate', 'search', file, '--max-duration', '1h'])
    let stderr = ''
    child.stderr.on('data', (data) => {
      stderr += data
    })
    const exited = once(child, 'exit')
    // The handler is in place once the command has reported that it started.
    await once(child.stderr, 'data')
    child.kill('SIGINT')
    expect(await exited).toEqual([130, null])
    expect(stderr).toContain('stopped')
  })

  it.each([
    [['search'], 'missing scenario'],
    [['search', 'burst', '--trigger', 'slo'], 'did you mean slow?'],
    [['search', 'burst', '--max-size', '1'], 'must be a factor above 1'],
    [['search', 'burst', '--report', 'x.html'], 'not an option of simulate search'],
    [['pods', '--pods', '10,x'], 'must be a whole number'],
    [['pods', '--outage-every', '10'], '--outage-every: must be a duration with its unit'],
    [['pods', '--outage-every', '5s'], '--outage-every: must be longer than an outage, 5s'],
    [['burst', '--outage-every', '10s'], 'not an option of simulate SCENARIO'],
    [['burst', '--trigger', 'slow'], 'not an option of simulate SCENARIO'],
  ])('simulate %j is a usage error', async (args, message) => {
    const { code, stderr } = await runHere('simulate', ...args)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})

describe('spillway simulate pods', () => {
  it('simulate pods prints one line of figures for each size', async () => {
    const { stdout, code } = await runHere('simulate', 'pods', '--pods', '2,4', '--duration', '2s')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^pods +vendors of a pod +commands\/s/)
    expect(stdout.trimEnd().split('\n')).toHaveLength(3)
  })

  it('simulate pods --outage-every sets how often every vendor fails', async () => {
    const args = ['simulate', 'pods', '--pods', '2', '--duration', '8s', '--json']
    const openings = async (...more: string[]) => {
      const { stdout } = await runHere(...args, ...more)
      return JSON.parse(stdout).breaker.openings
    }
    expect(await openings()).toBe(0)
    expect(await openings('--outage-every', '6s')).toBeGreaterThan(0)
  })
})

describe('spillway plan', () => {
  const needs = ['--limit', '300/10s', '--latency', '100ms', '--pods', '3', '--deadline', '2s']

  it('plan writes a valid configuration that holds in the simulator', async () => {
    const file = join(folder, 'planned.yaml')
    const { stdout, code } = await runHere('plan', ...needs, '--out', file)
    expect(code).toBe(0)
    expect(stdout).toContain('All promises hold with Spillway.')
    const { vendors } = loadConfig({ file, env: { VENDOR_API_KEY: 'key' } })
    expect(vendors[0]?.guard.limits).toMatchObject([
      { unit: 'requests', limit: 300, windowMs: 10_000 },
    ])
  })

  it('plan finds conflicting values of a configuration', async () => {
    const config = write('fights.yaml', {
      vendors: {
        vendor: { protocol: 'openai', key: 'env:K', queue: { size: 10, timeoutMs: '5s' } },
      },
    })
    const { stdout } = await runHere('plan', ...needs, '--config', config, '--no-check')
    expect(stdout).toContain('queue.timeoutMs: 5 s is not below the deadline, 2 s')
  })
})
