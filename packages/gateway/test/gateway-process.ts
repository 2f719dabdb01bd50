/** A gateway as users start it: a separate process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { freePort } from '../../spillway/test/redis-server.js'
import { until } from '../../spillway/test/streams/stream-kit.js'

const BIN = fileURLToPath(new URL('../dist/bin/spillway.js', import.meta.url))
/** Only ends tests whose gateway never starts. */
const START_MS = 90_000

export interface GatewayProcess {
  readonly url: string
  readonly adminUrl: string
  readonly child: ChildProcess
  /** The folder of its configuration. */
  readonly folder: string
  /** The output so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves with its exit code. */
  readonly exit: Promise<number | null>
}

export interface ProcessOptions {
  /** The embedded configuration if undefined. */
  config?: object
  env?: Record<string, string>
  /** Free ports if undefined. */
  ports?: { port: number; adminPort: number }
}

/** Starts a gateway process that is ended after the test. */
export async function startGatewayProcess(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const started = await spawnGateway(options)
  onTestFinished(started.stop)
  return started
}

/** Starts a gateway process that the caller has to end. */
export async function spawnGateway({
  config,
  env = {},
  ports,
}: ProcessOptions): Promise<GatewayProcess & { stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
  const { port, adminPort } = ports ?? { port: await freePort(), adminPort: await freePort() }
  const args = [BIN, 'gateway', '--port', String(port), '--admin-port', String(adminPort)]
  if (config !== undefined) writeFileSync(join(folder, 'spillway.yaml'), JSON.stringify(config))
  const { REDIS_URL: _, ...ours } = process.env
  const child = spawn(process.execPath, args, { cwd: folder, env: { ...ours, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve))
  const stop = async () => {
    child.kill('SIGKILL')
    await exit
    rmSync(folder, { recursive: true, force: true })
  }
  await until(
    'the gateway has started',
    () => stderr.includes('Ctrl-C stops it') || child.exitCode !== null,
    START_MS,
  )
  return {
    url: `http://127.0.0.1:${port}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    child,
    folder,
    stdout: () => stdout,
    stderr: () => stderr,
    exit,
    stop,
  }
}
