/**
 * A real Redis server for tests with its own process, port and folder, and nothing kept on disk.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RedisClient } from 'redis'
import { endWithThisProcess } from './end-with-process.js'

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Sends one command over a separate connection. */
  send(...command: string[]): Promise<unknown>
  /** Stops the process; the system still accepts connections for it. */
  pause(): void
  resume(): void
  /** Kills the process without a shutdown. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export interface ServerOptions {
  /** A free port if undefined. */
  port?: number
  /** Settings of redis.conf. */
  settings?: Readonly<Record<string, string | number>>
  /** Sentinels store their state in their configuration, so they need a file. */
  sentinel?: string
  /** Credentials for the URL. */
  login?: string
  tls?: object
}

const START_MS = 10_000
/** `createClient()` would build a class with all commands for each URL, in 40 ms of CPU time. */
const createClient = RedisClient.factory({ RESP: 2 })
const ATTEMPTS = 5

export async function startRedis(options: ServerOptions = {}): Promise<RedisServer> {
  if (options.port !== undefined) return startOn(options.port, options)
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), options)
    } catch (error) {
      // Another process may have taken the port in between.
      if (attempt === ATTEMPTS || (error as NodeJS.ErrnoException).code === 'ENOENT') throw error
    }
  }
}

async function startOn(port: number, options: ServerOptions): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const child = spawnServer(port, folder, options)
  const forget = endWithThisProcess(child.pid)
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => {
      forget()
      rmSync(folder, { recursive: true, force: true })
      resolve()
    })
  })
  const { login = '', tls } = options
  const url = `${tls === undefined ? 'redis' : 'rediss'}://${login}127.0.0.1:${port}`
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return gone
  }
  try {
    await untilItAnswers(child, url, tls)
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
  return {
    port,
    url,
    send: (...command) => sendTo(url, command, tls),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill: () => end('SIGKILL'),
    stop: () => {
      // A paused process would not notice the shutdown.
      child.kill('SIGCONT')
      return end('SIGTERM')
    },
  }
}

function spawnServer(port: number, folder: string, options: ServerOptions): ChildProcess {
  const settings = {
    // With TLS there is no plain port.
    ...(options.tls === undefined ? { port } : { port: 0, 'tls-port': port }),
    bind: '127.0.0.1',
    dir: folder,
    daemonize: 'no',
    loglevel: 'warning',
    ...(options.sentinel === undefined && { save: '', appendonly: 'no' }),
    ...options.settings,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  if (options.sentinel !== undefined) {
    const file = join(folder, 'sentinel.conf')
    writeFileSync(file, options.sentinel)
    args.unshift(file, '--sentinel')
  }
  return spawn(process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server', args, { stdio: 'ignore' })
}

async function untilItAnswers(child: ChildProcess, url: string, tls?: object): Promise<void> {
  let failure: Error | undefined
  child.once('error', (error) => {
    failure = error
  })
  child.once('exit', (code, signal) => {
    failure ??= new Error(`redis-server ended with ${code ?? signal}`)
  })
  const lastMs = performance.now() + START_MS
  while (failure === undefined && performance.now() < lastMs) {
    // The process id distinguishes it from a foreign server that took the port.
    const info = await sendTo(url, ['INFO', 'server'], tls).catch(() => '')
    if (String(info).includes(`process_id:${child.pid}\r`)) return
    await sleep(5)
  }
  throw failure ?? new Error(`redis-server did not answer within ${START_MS} ms`)
}

async function sendTo(url: string, command: string[], tls: object | undefined): Promise<unknown> {
  const socket = { ...tls, tls: tls !== undefined, reconnectStrategy: false }
  const client = createClient({ url, RESP: 2, socket } as object)
  client.on('error', () => {})
  await client.connect()
  try {
    return await client.sendCommand(command)
  } finally {
    if (client.isOpen) client.destroy()
  }
}

/**
 * Below the range from which systems take the ports of outgoing connections. One of those could otherwise get the port
 * before its server does.
 */
const [FIRST_PORT, LAST_PORT] = [20_000, 32_000]

export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor((LAST_PORT - FIRST_PORT) * Math.random())
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
