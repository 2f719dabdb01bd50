// test-group: io, slow

/**
 * The command with real processes and a real Redis: standalone, behind Sentinels and as a cluster. Further cases run
 * inside this process.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startCluster } from '../../spillway/test/redis-cluster.js'
import { MASTER, startSentinels } from '../../spillway/test/redis-sentinels.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { openShell, runHere, spawnCommand } from './command-kit.js'
import { startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'

const SLOW = 120_000

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

const GUARD = {
  breaker: { failureRate: 0.5, minimumCalls: 5, openMs: '30s' },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
}

function ask(url: string): Promise<Response> {
  const body = JSON.stringify({ model: 'gpt', messages: [] })
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
}

const statusOf = (url: string) => async () => (await ask(url)).status

describe('CLI with the configuration and Redis only', () => {
  it(
    'the CLI shows a gateway, stops its calls, changes its limit and undoes both',
    async () => {
      const { url: vendorUrl } = await startVendor()
      // The operator's machine does not have the vendor's key.
      const vendors = {
        openai: { protocol: 'openai', url: vendorUrl, key: 'env:VENDOR_KEY', ...GUARD },
      }
      const routes = [{ vendor: 'openai', models: ['gpt'] }]
      const config = { redis: { url: 'env:REDIS', prefix: 'op1' }, vendors, routes }
      const env = { REDIS: redis.url }
      const gateway = await startGatewayProcess({ config, env: { ...env, VENDOR_KEY: 'k' } })
      const { run, runHere: here } = openShell(config, env)
      vi.stubEnv('REDIS', redis.url)
      onTestFinished(() => void vi.unstubAllEnvs())
      expect((await ask(gateway.url)).status).toBe(200)

      const isolated = await run('breaker', 'isolate', 'openai', '--for', '5m', '--by', 'ada')
      expect(isolated).toMatchObject({
        code: 0,
        stdout: 'openai: isolated all lanes for 5m, by ada\n',
      })
      await expect.poll(statusOf(gateway.url)).toBe(503)
      // The action was done by a process that has ended; the gateway logs it.
      const logLine = () =>
        gateway
          .stdout()
          .split('\n')
          .find((line) => line.includes('operator.acted-elsewhere'))
      await until('a line in its log', () => logLine() !== undefined)
      expect(JSON.parse(logLine() ?? '')).toMatchObject({
        name: 'openai',
        action: 'isolate',
        by: 'ada',
        forMs: 300_000,
        message: 'isolated all lanes',
      })
      const seen = await here('status')
      expect(seen.code).toBe(0)
      expect(seen.stdout).toMatch(/pods: 1\n/)
      expect(seen.stdout).toMatch(/openai +gpt +isolated/)

      expect((await here('breaker', 'close', 'openai', '--lane', 'gpt')).code).toBe(0)
      expect((await here('breaker', 'close', 'openai')).code).toBe(0)
      await expect.poll(statusOf(gateway.url)).toBe(200)

      const set = await here('limit', 'set', 'openai', 'requests', '1', '--for', '10m', '--json')
      expect(JSON.parse(set.stdout)).toMatchObject({ action: 'override', limit: 1, forMs: 600_000 })
      await expect.poll(statusOf(gateway.url)).toBe(429)
      expect((await here('status')).stdout).toMatch(/requests +\d+ +1 \(not 100\)/)
      expect((await here('limit', 'clear', 'openai', 'requests')).code).toBe(0)
      await expect.poll(statusOf(gateway.url)).toBe(200)

      expect((await here('pause', 'openai', '--for', '10m')).code).toBe(0)
      await expect.poll(statusOf(gateway.url)).toBe(429)
      expect((await here('resume', 'openai')).code).toBe(0)
      await expect.poll(statusOf(gateway.url)).toBe(200)
    },
    SLOW,
  )

  it(
    'the CLI reports each kind of error with its own exit code',
    async () => {
      const vendors = { openai: { protocol: 'openai', ...GUARD } }
      const shared = openShell({ redis: redis.url, vendors })
      const alone = openShell({ vendors })
      const nowhere = openShell({ redis: 'redis://127.0.0.1:1', vendors })
      const secret = openShell({ redis: 'env:NOT_SET_ANYWHERE', vendors })
      const away = await nowhere.run('status')
      const usage = await shared.runHere('breaker', 'isolate', 'openai', '--for', '10')
      const unknown = await shared.runHere('breaker', 'reset', 'opnai')
      const typo = await shared.runHere('limit', 'set', 'openai', 'request', '5', '--for', '1m')
      const none = await alone.runHere('status')
      const missing = await secret.runHere('status')
      expect(unknown).toMatchObject({ code: 1 })
      expect(unknown.stderr).toContain("did you mean 'openai'?")
      expect(typo).toMatchObject({ code: 1 })
      expect(typo.stderr).toContain("did you mean 'requests'?")
      expect(usage).toMatchObject({ code: 2 })
      expect(usage.stderr).toContain('must be a duration with its unit, such as 30s or 10m')
      expect(none).toMatchObject({ code: 1 })
      expect(none.stderr).toContain('--admin')
      expect(away).toMatchObject({ code: 3 })
      expect(away.stderr).toMatch(/^the store is unreachable: connect ECONNREFUSED .*--redis\n$/)
      expect(missing).toMatchObject({ code: 1 })
      expect(missing.stderr).toContain('NOT_SET_ANYWHERE is missing')
      for (const { stderr } of [unknown, typo, usage, none, away, missing]) {
        expect(stderr).not.toContain('    at ')
      }
    },
    SLOW,
  )
})

describe('hash-key with piped input', () => {
  it('a piped key is printed as a configuration line and nowhere else', async () => {
    const { child, exit, stdout, stderr } = spawnCommand('hash-key')
    child.stdin.end('a-key-made-by-a-machine-0123\n')
    expect(await exit).toBe(0)
    expect(stdout()).toMatch(/^key: sha256:[0-9a-f]{64}\n$/)
    expect(stderr()).toBe('')
  })
})

describe('CLI without a store', () => {
  it(
    'the CLI uses the admin port with its token',
    async () => {
      const { url: vendorUrl } = await startVendor()
      const token = 'a-token-of-some-length'
      const config = {
        admin: { token: 'env:ADMIN_TOKEN' },
        vendors: { openai: { protocol: 'openai', url: vendorUrl, ...GUARD } },
      }
      const gateway = await startGatewayProcess({ config, env: { ADMIN_TOKEN: token } })
      const admin = ['--admin', gateway.adminUrl]
      const refused = await runHere('breaker', 'isolate', 'openai', ...admin)
      expect(refused).toMatchObject({ code: 1 })
      expect(refused.stderr).toContain('admin.token')
      expect((await ask(gateway.url)).status).toBe(200)
      vi.stubEnv('SPILLWAY_ADMIN_TOKEN', token)
      onTestFinished(() => void vi.unstubAllEnvs())
      expect((await runHere('breaker', 'isolate', 'openai', ...admin)).code).toBe(0)
      expect((await ask(gateway.url)).status).toBe(503)
      expect((await runHere('status', ...admin)).stdout).toContain('isolated')
      expect((await runHere('status', '--admin', 'http://127.0.0.1:1')).code).toBe(3)
      gateway.child.kill('SIGTERM')
      await gateway.exit
      const audit = gateway
        .stdout()
        .split('\n')
        .filter((line) => line.includes('operator.acted'))
      expect(audit).toHaveLength(2)
      expect(audit[0]).toContain('"result":"refused"')
      expect(audit[1]).toContain('"action":"isolate"')
      expect(gateway.stdout()).not.toContain(token)
    },
    SLOW,
  )
})

describe('spillway doctor', () => {
  const vendors = { openai: { protocol: 'openai', ...GUARD } }

  it(
    'doctor finds problems of a server and suggests fixes',
    async () => {
      const settings = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' }
      const server = await startRedis({ settings })
      try {
        await server.send('ACL', 'SETUSER', 'weak', 'on', '>pass', '~*', '&*', '+@all', '-eval')
        const url = server.url.replace('redis://', 'redis://weak:pass@')
        const good = openShell({ redis: server.url, vendors })
        const weak = openShell({ redis: 'env:WEAK', vendors })
        vi.stubEnv('WEAK', url)
        onTestFinished(() => void vi.unstubAllEnvs())
        const seen = await good.runHere('doctor')
        const denied = await weak.runHere('doctor', '--json')
        expect(seen.code).toBe(0)
        expect(seen.stdout).toMatch(/warn +eviction +allkeys-lru\n +limits and breakers would be/)
        expect(seen.stdout).toMatch(/warn +persistence/)
        expect(seen.stdout).toMatch(/ok +server +127\.0\.0\.1:\d+: (Redis|Valkey) \d/)
        expect(seen.stdout).toMatch(/ok +clock/)
        expect(seen.stdout).toMatch(/ok +latency/)
        expect(denied.code).toBe(1)
        const findings = JSON.parse(denied.stdout) as { verdict: string; message: string }[]
        expect(findings).toContainEqual(
          expect.objectContaining({
            verdict: 'fail',
            message: expect.stringContaining('may not run EVAL'),
          }),
        )
        expect(denied.stdout + denied.stderr).not.toContain('pass@')
      } finally {
        await server.stop()
      }
    },
    SLOW,
  )

  it('doctor reports a Redis that does not answer once, with exit code 3, and open access', async () => {
    vi.stubEnv('VENDOR_KEY', 'k')
    onTestFinished(() => void vi.unstubAllEnvs())
    const keyed = { openai: { protocol: 'openai', key: 'env:VENDOR_KEY' } }
    const seen = await openShell({ redis: 'redis://127.0.0.1:1', vendors: keyed }).runHere('doctor')
    expect(seen.code).toBe(3)
    expect(seen.stdout.match(/ECONNREFUSED/g)).toHaveLength(1)
    expect(seen.stdout).toMatch(/ok +config +\S+: 1 vendor, 1 route\n/)
    expect(seen.stdout).toMatch(/warn +callers +open to everyone who can reach port 8080/)
    expect(seen.stdout).toMatch(/, 1 warning, 1 failed\n$/)
  })

  it(
    'doctor checks a server behind Sentinels, and the CLI can act on it',
    async () => {
      const watched = await startSentinels()
      try {
        const redis = { sentinels: watched.urls, master: MASTER }
        const shell = openShell({ redis, vendors })
        const wrong = openShell({ redis: { ...redis, master: 'unknown' }, vendors })
        const seen = await shell.runHere('doctor')
        const done = await shell.runHere('breaker', 'open', 'openai', '--for', '1m')
        const lost = await wrong.runHere('doctor')
        expect(seen.stdout).toMatch(/ok +sentinels +3 of 3 answer/)
        expect(seen.stdout).toMatch(/ok +permissions/)
        expect(seen.code).toBe(0)
        expect(done.code).toBe(0)
        expect(lost.code).toBe(1)
        expect(lost.stdout).toContain("does not know 'unknown'")
      } finally {
        await watched.stop()
      }
    },
    SLOW,
  )

  it(
    'doctor checks a cluster, and the CLI can act on it',
    async () => {
      const cluster = await startCluster()
      try {
        const shell = openShell({ redis: { urls: cluster.urls.slice(0, 2) }, vendors })
        const seen = await shell.runHere('doctor')
        const done = await shell.runHere('breaker', 'open', 'openai', '--for', '1m')
        const status = await shell.runHere('status', '--json')
        expect(seen.stdout).toMatch(/ok +cluster +all slots are served; 2 of 2/)
        expect(seen.code).toBe(0)
        expect(done.code).toBe(0)
        expect(JSON.parse(status.stdout)).toMatchObject({ store: 'shared' })
      } finally {
        await cluster.stop()
      }
    },
    SLOW,
  )
})

describe('spillway mock-vendor', () => {
  it('mock-vendor applies its options and exits with 0 on Ctrl-C', async () => {
    const options = ['--port', '0', '--status', '529', '--error-rate', '1', '--limit', '60/1m']
    const { child, exit, stderr } = spawnCommand('mock-vendor', ...options)
    await until('it listens', () => stderr().includes('Ctrl-C stops it'))
    const [, url = ''] = /Mock vendor on (\S+)/.exec(stderr()) ?? []
    expect((await ask(url)).status).toBe(529)
    child.kill('SIGINT')
    expect(await exit).toBe(0)
    expect(stderr()).toContain('requests:')
  })
})

describe('spillway status --watch', () => {
  it('status --watch runs until Ctrl-C and exits with 0', async () => {
    const { folder } = openShell({
      redis: redis.url,
      vendors: { openai: { protocol: 'openai', ...GUARD } },
    })
    const args = ['--config', `${folder}/spillway.yaml`, '--watch', '--every', '50ms', '--json']
    const { child, exit, stdout } = spawnCommand('status', ...args)
    await until('it has looked three times', () => stdout().split('\n').length > 3)
    child.kill('SIGINT')
    expect(await exit).toBe(0)
  })
})
