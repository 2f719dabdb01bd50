/** `spillway gateway`: reads the configuration, runs until a signal, and drains. */
import type { RedisStore } from 'spillway/redis'
import type { Gateway } from '../../gateway.js'
import { WORKER_VARIABLE } from '../../workers/protocol.js'
import { CommandError } from '../command-error.js'
import { ConfigSource, type GatewayCommand } from './config-source.js'
import { greeting } from './greeting.js'
import { reloadOnChange } from './reload-on-change.js'
import { untilSignalled } from './until-signalled.js'

export async function runGateway(command: GatewayCommand): Promise<void> {
  const source = new ConfigSource(command)
  // Defined in a forked process, even after its connection to the supervisor has ended. The variable alone is not
  // enough: other processes may have inherited it.
  if (process.env[WORKER_VARIABLE] !== undefined && process.send !== undefined) {
    // A worker without its supervisor would start workers itself.
    if (!process.connected)
      throw new CommandError('the supervisor has ended, so this worker ends, too')
    const { runWorker } = await import('./run-worker.js')
    return runWorker(source)
  }
  const config = source.read()
  if (config.workers > 1) {
    const { runSupervisor } = await import('./run-supervisor.js')
    return runSupervisor(source, config)
  }
  // Loaded here, because a supervisor does not need it.
  const { createGateway } = await import('../../gateway.js')
  const { reachesStore } = await import('../../shared-store.js')
  const gateway = await createGateway(config, {
    read: () => source.read(),
    check: () => source.check(),
  })
  const { port, adminPort } = await start(gateway)
  const watching = reloadOnChange(source, config.reload.watch, (cause) => gateway.reload(cause))
  // Signals drain the gateway from now on, also before the first connection to Redis.
  const ended = untilSignalled(gateway.whenClosed, {
    drain: () => gateway.close(),
    end: () => gateway.close({ graceMs: 0, delayMs: 0 }),
  })
  const { store } = gateway.spillway
  const isReached = config.redis && (await reachesStore(store as RedisStore))
  process.stderr.write(greeting({ config, file: source.file, port, adminPort, isReached }))
  await ended
  watching?.close()
}

/** A port that is in use ends it, with everything that was opened before. */
async function start(gateway: Gateway): Promise<{ port: number; adminPort: number }> {
  try {
    return await gateway.start()
  } catch (error) {
    await gateway.close({ graceMs: 0, delayMs: 0 })
    throw error
  }
}
