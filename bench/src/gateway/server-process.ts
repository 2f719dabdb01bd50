/** Runs a server of this bench in its own process: the module is started again with `fork`. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'
import { endProcess, spawnOwn } from '../own-process.js'

export interface ServerProcess {
  readonly child: ChildProcess
  readonly url: string
}

/** Starts the module at `moduleUrl`, which calls `serve` when `isServerProcess`. */
export async function startServerProcess(
  moduleUrl: string,
  args: readonly string[],
  { atEnd }: Preparation,
): Promise<ServerProcess> {
  const file = fileURLToPath(moduleUrl)
  const child = spawnOwn(process.execPath, [file, ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  atEnd(() => endProcess(child))
  const [port] = await Promise.race([
    once(child, 'message'),
    once(child, 'close').then(() => {
      throw new BenchError(`${file} exited during its start; its output is above`)
    }),
  ])
  return { child, url: `http://127.0.0.1:${port}` }
}

export function isServerProcess(moduleUrl: string): boolean {
  return process.argv[1] === fileURLToPath(moduleUrl)
}

/** Listens on a free port and sends the port to the parent process. */
export function serve(server: Server): void {
  // Contenders take turns; a connection must not be closed while its contender is idle.
  server.keepAliveTimeout = 600_000
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
  // The parent process has ended.
  process.once('disconnect', () => process.exit())
}
