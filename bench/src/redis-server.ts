/** A Redis server for one bench: its own process, a free port on loopback, no persistence. */
import type { ChildProcess } from 'node:child_process'
import { tmpdir } from 'node:os'
import { BenchError } from './bench-error.js'
import { endProcess, freePort, spawnOwn } from './own-process.js'

export interface RedisServer {
  readonly url: string
  stop(): Promise<void>
}

const ATTEMPTS = 5
const START_MS = 10_000
/** The last line that Redis and Valkey log before they accept connections. */
const READY = 'Ready to accept connections'

export async function startRedis(): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    const server = spawnServer(port)
    const problem = await startingProblem(server)
    if (problem === undefined) {
      return { url: `redis://127.0.0.1:${port}`, stop: () => endProcess(server) }
    }
    await endProcess(server)
    // Another process may have taken the port in the meantime.
    if (attempt === ATTEMPTS || server.pid === undefined) throw new BenchError(problem)
  }
}

function spawnServer(port: number): ChildProcess {
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: tmpdir(),
    save: '',
    appendonly: 'no',
    daemonize: 'no',
    loglevel: 'notice',
    logfile: '',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  return spawnOwn(program(), args, { stdio: ['ignore', 'pipe', 'ignore'] })
}

/** Resolves with undefined when the server listens, and with the reason if it exits. */
async function startingProblem(server: ChildProcess): Promise<string | undefined> {
  let late: NodeJS.Timeout | undefined
  const problem = await new Promise<string | undefined>((resolve) => {
    let log = ''
    late = setTimeout(() => resolve(`${program()} did not start:\n${log}`), START_MS)
    server.stdout?.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes(READY)) resolve(undefined)
    })
    server.once('error', (error) => resolve(missing(error)))
    server.once('close', () => resolve(`${program()} ended at once:\n${log}`))
  })
  clearTimeout(late)
  return problem
}

function missing(error: Error): string {
  return `${program()} could not be started (${(error as NodeJS.ErrnoException).code}).
This suite needs redis-server (Redis 7 or Valkey) on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
or say where it is: SPILLWAY_REDIS_SERVER=/path/to/redis-server`
}

function program(): string {
  return process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server'
}
