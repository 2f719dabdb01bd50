/** Runs a gateway as users do: in its own process, with a configuration file. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../packages/gateway/dist/bin/spillway.js', import.meta.url))
const START_MS = 20_000

export interface GatewayProcess {
  readonly pid: number
  readonly url: string
  readonly adminUrl: string
  /** The log so far. */
  log(): string
  /** Replaces the configuration file. A string is written unchanged, for invalid files. */
  rewrite(config: object | string): void
  signal(signal: NodeJS.Signals): void
  /** Stops the gateway with SIGTERM. Resolves with its exit code, or null if a signal ended it. */
  stop(): Promise<number | null>
}

export async function startGateway(
  config: object,
  env: Readonly<Record<string, string>>,
): Promise<GatewayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
  const [port, adminPort] = [await freePort(), await freePort()]
  const file = join(folder, 'spillway.yaml')
  // JSON is valid YAML. The file is renamed into place, as editors do.
  const rewrite = (next: object | string) => {
    const own = { port, host: '127.0.0.1', admin: { port: adminPort } }
    const text = typeof next === 'string' ? next : JSON.stringify({ ...next, ...own })
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  rewrite(config)
  const child = spawn(process.execPath, [BIN, 'gateway', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // In a group of its own, so that Ctrl-C reaches only this process, which stops the gateway.
    detached: true,
    env: { ...process.env, ...env },
  })
  let log = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    log += text
  })
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const adminUrl = `http://127.0.0.1:${adminPort}`
  await untilReady(`${adminUrl}/health/ready`, child)
  return {
    pid: child.pid!,
    url: `http://127.0.0.1:${port}`,
    adminUrl,
    log: () => log,
    rewrite,
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      process.off('exit', endWithUs)
      rmSync(folder, { recursive: true, force: true })
      return child.exitCode
    },
  }
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const endMs = performance.now() + START_MS
  while (performance.now() < endMs && child.exitCode === null) {
    const ready = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
    if (ready) return
    await sleep(50)
  }
  throw new Error('the gateway did not start')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
