/** The supervisor of `spillway gateway` with more than one worker: it serves no requests itself. */
import { type ChildProcess, fork } from 'node:child_process'
import type { GatewayConfig } from '../../config/config.js'
import { listenAddress } from '../../config/listen-address.js'
import { removeStaleSocket } from '../../server/stale-socket.js'
import { listen } from '../../workers/listen.js'
import { type FileContents, WORKER_VARIABLE } from '../../workers/protocol.js'
import { SupervisedWorker } from '../../workers/supervised-worker.js'
import { Supervisor, WorkersFailedError } from '../../workers/supervisor.js'
import { CommandError } from '../command-error.js'
import type { ConfigSource } from './config-source.js'
import { greeting } from './greeting.js'
import { reloadOnChange } from './reload-on-change.js'
import { untilSignalled } from './until-signalled.js'

export async function runSupervisor(source: ConfigSource, config: GatewayConfig): Promise<void> {
  let { drain } = config
  const readFiles = (): FileContents => {
    try {
      ;({ drain } = source.read())
    } catch {
      // The workers read the same contents and refuse them, each with a log line.
    }
    return [...source.contents]
  }
  const supervisor = new Supervisor(
    {
      workers: config.workers,
      fork: (api) => new SupervisedWorker(forkWorker(), api),
      keepsSpare: true,
      readFiles,
      listen: (port, onConnection) => {
        const { host, port: adminPort } = config.admin
        const address = port === 'admin' ? { host, port: adminPort } : listenAddress(config)
        return listen(address, onConnection)
      },
      print: (text) => process.stderr.write(text),
    },
    [...source.contents],
  )
  const stop = untilSignalled(supervisor.ended, {
    drain: () => {
      supervisor.drain(drain)
      return supervisor.ended
    },
    end: () => {
      supervisor.end()
      return supervisor.ended
    },
  })
  stop.catch(() => {})
  if (config.listen !== undefined) await removeStaleSocket(config.listen)
  const { port, adminPort } = await supervisor.start().catch(explained)
  const watching = reloadOnChange(source, config.reload.watch, (cause) => supervisor.reload(cause))
  process.stderr.write(greeting({ config, file: source.file, port, adminPort }))
  await stop.catch(explained)
  watching?.close()
}

/** Starts this program again with its arguments. */
function forkWorker(): ChildProcess {
  const env = { ...process.env, [WORKER_VARIABLE]: '1' }
  return fork(process.argv[1] as string, process.argv.slice(2), { env })
}

/** With the exit code that the command line explains, such as the one for a port in use. */
function explained(error: unknown): never {
  if (!(error instanceof WorkersFailedError)) throw error
  if (error.code === undefined) throw new CommandError(error.message)
  throw Object.assign(new Error(error.message), { code: error.code })
}
