/** A Redis server for fault injection: its own process, and a connection for commands. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RedisProcess {
  readonly port: number
  /** Sends a command; resolves with the first line of the reply. */
  command(text: string): Promise<string>
  signal(signal: NodeJS.Signals): void
  /** Kills the server. Its data on disk stays for the next server with this folder. */
  kill(): Promise<void>
  stop(): Promise<void>
}

const START_MS = 10_000

/** `folder`: data folder of an earlier server. */
export async function startRedis(port: number, folder?: string): Promise<RedisProcess> {
  const own = folder ?? mkdtempSync(join(tmpdir(), 'faults-'))
  const durable = folder === undefined ? 'no' : 'yes'
  const settings = { port, bind: '127.0.0.1', dir: own, save: '', appendonly: durable }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  const child = spawn(
    process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server',
    [...args, '--appendfsync', 'always', '--loglevel', 'warning'],
    // In a group of its own, so that Ctrl-C reaches only this process, which stops the server.
    { stdio: 'ignore', detached: true },
  )
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  let wire: Socket | undefined
  const endMs = performance.now() + START_MS
  while (wire === undefined) {
    if (performance.now() > endMs || child.exitCode !== null) throw new Error('Redis did not start')
    wire = await dial(port)
    if (wire === undefined) await sleep(10)
  }
  const operator = wire
  const end = async (signal: NodeJS.Signals) => {
    operator.destroy()
    child.kill('SIGCONT')
    child.kill(signal)
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    process.off('exit', endWithUs)
  }
  return {
    port,
    async command(text) {
      const answer = once(operator, 'data')
      operator.write(`${text}\r\n`)
      const [data] = await answer
      return String(data).split('\r\n')[0] ?? ''
    },
    signal: (signal) => void child.kill(signal),
    kill: () => end('SIGKILL'),
    async stop() {
      await end('SIGKILL')
      rmSync(own, { recursive: true, force: true })
    },
  }
}

async function dial(port: number): Promise<Socket | undefined> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.on('error', () => {})
  const up = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    once(socket, 'close').then(() => false),
  ])
  return up ? socket : undefined
}
