/** `spillway gateway`: reads the configuration, runs until it is told to stop, and drains. */
import { existsSync } from 'node:fs'
import type { GatewayConfig } from '../config/config.js'
import { embeddedConfig } from '../config/embedded.js'
import { loadConfig } from '../config/load.js'
import { createGateway, type Gateway } from '../gateway.js'
import type { GatewayCommand } from './command-line.js'
import { greeting } from './greeting.js'

const USUAL_FILE = 'spillway.yaml'
/** From a terminal a signal comes twice: to us, and to whoever started us, who passes it on. */
const ECHO_MS = 500

export async function runGateway(command: GatewayCommand): Promise<void> {
  const { config, file } = readConfig(command)
  const gateway = await createGateway(config)
  const { port, adminPort } = await start(gateway)
  process.stderr.write(greeting({ config, file, port, adminPort }))
  await untilTold(gateway)
}

function readConfig(command: GatewayCommand): { config: GatewayConfig; file: string | undefined } {
  const file = command.config ?? (existsSync(USUAL_FILE) ? USUAL_FILE : undefined)
  const written = file === undefined ? embeddedConfig() : loadConfig({ file })
  const { port = written.port, adminPort = written.admin.port } = command
  return { config: { ...written, port, admin: { ...written.admin, port: adminPort } }, file }
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
