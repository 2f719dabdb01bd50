/** `spillway gateway`: reads the configuration, runs until it is told to stop, and drains. */
import { createGateway, type Gateway } from '../../gateway.js'
import { type FilesWatch, watchFiles } from '../../reload/watch-files.js'
import { ConfigSource, type GatewayCommand } from './config-source.js'
import { greeting } from './greeting.js'

/** From a terminal a signal comes twice: to us, and to whoever started us, who passes it on. */
const ECHO_MS = 500

export async function runGateway(command: GatewayCommand): Promise<void> {
  const source = new ConfigSource(command)
  const config = source.read()
  const gateway = await createGateway(config, { read: () => source.read() })
  const { port, adminPort } = await start(gateway)
  const watching = reloadWhenTold(gateway, source, config.reload.watch)
  process.stderr.write(greeting({ config, file: source.file, port, adminPort }))
  await untilTold(gateway)
  watching?.close()
}

/** By SIGHUP, and when what stands in a file has changed. */
function reloadWhenTold(
  gateway: Gateway,
  source: ConfigSource,
  watches: boolean,
): FilesWatch | undefined {
  const reload = async (cause: string) => {
    await gateway.reload(cause)
    watch?.loaded(source.contents)
  }
  const watch =
    watches && source.file !== undefined ? watchFiles(() => void reload('file')) : undefined
  watch?.loaded(source.contents)
  // Without a file it is what closing a terminal does, and ends us.
  if (source.file !== undefined) process.on('SIGHUP', () => void reload('SIGHUP'))
  return watch
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

function untilTold(gateway: Gateway): Promise<void> {
  return new Promise((resolve, reject) => {
    let toldMs: number | undefined
    // An operator may have asked it to drain.
    gateway.whenClosed.then(resolve, reject)
    const stop = (signal: NodeJS.Signals) => {
      const nowMs = performance.now()
      if (toldMs === undefined) {
        toldMs = nowMs
        process.stderr.write(`\n${signal}: finishing what runs; once more to stop at once\n`)
        gateway.close().then(resolve, reject)
      } else if (nowMs - toldMs > ECHO_MS) {
        gateway.close({ graceMs: 0, delayMs: 0 }).catch(reject)
      }
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
}
