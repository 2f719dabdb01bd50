// test-group: io, slow

/** The command `spillway gateway` as users start it. */
import { execFile, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../../spillway/test/redis-server.js'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { runHere } from './command-kit.js'
import { startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'

const BIN = fileURLToPath(new URL('../dist/bin/spillway.js', import.meta.url))
const run = promisify(execFile)

/** The output and exit code of a command. */
async function spillway(...args: string[]) {
  try {
    return { code: 0, ...(await run(process.execPath, [BIN, ...args])) }
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string }
  }
}

/** The curl lines of the greeting, as a shell would run them. */
function curlLines(greeting: string): string[] {
  return greeting
    .split('\n')
    .flatMap((line) => (line.trim().startsWith('curl') ? [line.trim()] : []))
}

describe('spillway gateway', () => {
  it('a gateway without a configuration prints working curl lines and exits with 0 on Ctrl-C', async () => {
    const { stderr, child, exit, adminUrl } = await startGatewayProcess()
    const lines = curlLines(stderr())
    expect(lines).toHaveLength(4)
    const [answer = '', stream = '', failing = '', later = ''] = await Promise.all(
      lines.map(async (line) => (await run('sh', ['-c', line])).stdout),
    )
    expect(answer).toMatch(/^HTTP\/1.1 200 OK/)
    expect(answer).toContain('spillway-decision: admitted')
    expect(answer).toContain('"chat.completion"')
    expect(stream).toMatch(/data: \{.*\}\n\ndata: \[DONE\]\n\n$/s)
    expect(failing).toMatch(/^HTTP\/1.1 503/)
    expect(failing).toMatch(/spillway-attempts: [2-9]/)
    expect(later).toMatch(/^HTTP\/1.1 202/)
    expect(later).toMatch(/location: \/spillway\/jobs\/later\/\d+/)
    expect((await fetch(`${adminUrl}/health/ready`)).status).toBe(200)
    child.kill('SIGINT')
    expect(await exit).toBe(0)
  })

  it('a worker whose supervisor ends while it starts ends as well, and does not become a gateway', async () => {
    const args = ['gateway', '--port', '0', '--admin-port', '0']
    const env = { ...process.env, SPILLWAY_WORKER: '1' }
    const child = fork(BIN, args, { env, silent: true })
    onTestFinished(() => void child.kill('SIGKILL'))
    let stderr = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.disconnect()
    const hasStarted = () => stderr.includes('Ctrl-C stops it')
    await until('it has ended or started', () => child.exitCode !== null || hasStarted())
    expect(child.exitCode).toBe(1)
    expect(stderr).toContain('the supervisor has ended')
  })

  it('gateway logs a line per request without secrets and bodies', async () => {
    const { vendor, url: vendorUrl } = await startVendor({ knobs: { tokens: 3 } })
    const { url, stdout, child, exit } = await startGatewayProcess({
      config: {
        vendors: { openai: { protocol: 'openai', url: vendorUrl, key: 'env:VENDOR_KEY' } },
        callers: [{ key: 'env:ANN_KEY', user: 'ann' }],
      },
      env: { VENDOR_KEY: 'vendor-secret', ANN_KEY: 'ann-secret' },
    })
    const answer = await fetch(`${url}/v1/chat/completions?debug=ann-secret`, {
      method: 'POST',
      headers: { authorization: 'Bearer ann-secret', 'x-request-id': 'my-id' },
      body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'whispered' }] }),
    })
    expect(answer.status).toBe(200)
    await answer.text()
    expect(vendor.calls[0]?.key).toBe('vendor-secret')
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    const lines = stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(
      expect.objectContaining({
        id: 'my-id',
        user: 'ann',
        status: 200,
        vendor: 'openai',
        msg: 'request',
      }),
    )
    expect(stdout()).not.toMatch(/secret|whispered/)
  })

  it('gateway logs at level warn that its Redis is unreachable, without the password', async () => {
    const port = await freePort()
    const { stdout, stderr } = await startGatewayProcess({
      config: {
        log: { level: 'warn' },
        redis: 'env:STORE_URL',
        vendors: {
          openai: { protocol: 'openai', url: 'mock', limits: [{ limit: 5, windowMs: '1m' }] },
        },
      },
      env: { STORE_URL: `redis://user:secret@127.0.0.1:${port}` },
    })
    await until('a line about the store', () => stdout().includes('store.unreachable'))
    const line = stdout()
      .split('\n')
      .find((each) => each.includes('store.unreachable'))
    expect(JSON.parse(line ?? '')).toMatchObject({
      level: 40,
      msg: 'store.unreachable',
      url: `redis://127.0.0.1:${port}`,
      why: expect.stringContaining('ECONNREFUSED'),
    })
    expect(stdout() + stderr()).not.toContain('secret')
  })

  it('SIGTERM lets a stream end, and a second signal ends the process at once', async () => {
    const { url: vendorUrl } = await startVendor({ knobs: { tokens: 30, tokenMs: 20 } })
    const config = { vendors: { openai: { protocol: 'openai', url: vendorUrl } } }
    const ask = (url: string, mock: object) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-mock': JSON.stringify(mock) },
        body: JSON.stringify({ model: 'gpt', stream: true, messages: [] }),
      })
    const drained = await startGatewayProcess({ config })
    const answer = await ask(drained.url, {})
    drained.child.kill('SIGTERM')
    expect(await answer.text()).toContain('[DONE]')
    expect(await drained.exit).toBe(0)

    const stopped = await startGatewayProcess({ config })
    const endless = await ask(stopped.url, { stallAfter: 2 })
    stopped.child.kill('SIGINT')
    await until('the signal has arrived', () => stopped.stderr().includes('SIGINT'))
    // Longer than npm takes to repeat the first signal.
    await new Promise((resolve) => setTimeout(resolve, 700))
    expect(stopped.child.exitCode).toBeNull()
    stopped.child.kill('SIGINT')
    expect(await stopped.exit).toBe(0)
    expect(await endless.text()).not.toContain('[DONE]')
  })

  it('gateway logs a stream that it broke off after graceMs', async () => {
    const { url: vendorUrl } = await startVendor({ knobs: { tokens: 10_000, tokenMs: 10 } })
    const vendors = { openai: { protocol: 'openai', url: vendorUrl } }
    const config = { vendors, drain: { graceMs: 100 } }
    const { url, child, exit, stdout } = await startGatewayProcess({ config })
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-request-id': 'cut-short' },
      body: JSON.stringify({ model: 'gpt', stream: true, messages: [] }),
    })
    child.kill('SIGTERM')
    expect(await answer.text()).toContain('SHUTTING_DOWN')
    expect(await exit).toBe(0)
    const lines = stdout().split('\n')
    const ours = lines.filter((line) => line.includes('"id":"cut-short"'))
    expect(ours.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        msg: 'request',
        status: 200,
        code: 'SHUTTING_DOWN',
        end: 'aborted',
      }),
    ])
  })

  it('gateway reports every configuration mistake with line and column', async () => {
    const { stderr, exit } = await startGatewayProcess({
      config: {
        vendors: { openai: { protocol: 'openai', limits: [{ limit: 'ten', windowMs: '1m' }] } },
        prot: 1,
      },
    })
    expect(await exit).toBe(1)
    expect(stderr()).toMatch(/spillway\.yaml:1:\d+ +vendors\.openai\.limits\[0\]\.limit: must be/)
    expect(stderr()).toMatch(/prot: unknown option; did you mean 'port'\?/)
    expect(stderr()).not.toContain('    at ')
  })

  it('gateway reports a port that is in use', async () => {
    const { url } = await startGatewayProcess()
    const { code, stderr } = await spillway(
      'gateway',
      '--port',
      new URL(url).port,
      '--admin-port',
      '0',
    )
    expect(code).toBe(1)
    expect(stderr).toContain('EADDRINUSE')
    expect(stderr).not.toContain('    at ')
  })
})

describe('command line', () => {
  it('--help and --version print help and version', async () => {
    expect((await runHere('--help')).stdout).toContain('spillway gateway')
    expect((await runHere('gateway', '--help')).stdout).toContain('--admin-port')
    expect((await spillway('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it.each([
    [['gatway'], 'did you mean gateway?'],
    [['gateway', '--prot', '1'], 'did you mean'],
    [['gateway', '--port', 'x'], 'must be a port'],
    [['gateway', 'now'], 'unexpected argument "now"'],
  ])('invalid arguments %j are explained', async (args, message) => {
    const { code, stderr } = await runHere(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })

  it('the process exits with 2 after invalid arguments', async () => {
    expect(await spillway('gateway', '--port', 'x')).toMatchObject({ code: 2, stdout: '' })
  })
})
