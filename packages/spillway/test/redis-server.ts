/** A real Redis server for tests: its own process, port and folder, and nothing kept on disk. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'redis'

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Sends one command over a connection of its own. */
  send(...command: string[]): Promise<unknown>
  /** Stops the process in its tracks; the system still accepts connections for it. */
  pause(): void
  resume(): void
  /** Ends it without a goodbye. */
  kill(): Promise<void>
  stop(): Promise<void>
}

const START_MS = 10_000
const ATTEMPTS = 5

/** Starts a server on the port given, or on a free one. */
export async function startRedis({ port }: { port?: number } = {}): Promise<RedisServer> {
  if (port !== undefined) return startOn(port)
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort())
    } catch (error) {
      // Somebody else may have taken the port in between.
      if (attempt === ATTEMPTS || (error as NodeJS.ErrnoException).code === 'ENOENT') throw error
    }
  }
}

async function startOn(port: number): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const child = spawnServer(port, folder)
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => {
      process.off('exit', endWithUs)
      rmSync(folder, { recursive: true, force: true })
      resolve()
    })
  })
  const url = `redis://127.0.0.1:${port}`
  const end = (signal: NodeJS.Signals) => {
    // One that is paused would not notice that it is to shut down.
    child.kill('SIGCONT')
    child.kill(signal)
    return gone
  }
  try {
    await untilItAnswers(child, url, folder)
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
  return {
    port,
    url,
    send: (...command) => sendTo(url, command),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  }
}

function spawnServer(port: number, folder: string): ChildProcess {
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'no',
    daemonize: 'no',
    loglevel: 'warning',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  return spawn(process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server', args, { stdio: 'ignore' })
}

async function untilItAnswers(child: ChildProcess, url: string, folder: string): Promise<void> {
  let failure: Error | undefined
  child.once('error', (error) => {
    failure = error
  })
  child.once('exit', (code, signal) => {
    failure ??= new Error(`redis-server ended with ${code ?? signal}`)
  })
  const lastMs = performance.now() + START_MS
  while (failure === undefined && performance.now() < lastMs) {
    // Its folder tells it from somebody else's server that was faster to take the port.
    const reply = await sendTo(url, ['CONFIG', 'GET', 'dir']).catch(() => undefined)
    if (String(reply).endsWith(basename(folder))) return
    await sleep(5)
  }
  throw failure ?? new Error(`redis-server did not answer within ${START_MS} ms`)
}

async function sendTo(url: string, command: string[]): Promise<unknown> {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  await client.connect()
  try {
    return await client.sendCommand(command)
  } finally {
    if (client.isOpen) client.destroy()
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
