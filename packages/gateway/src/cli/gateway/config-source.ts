/** Where a gateway's configuration comes from, and what was read for it: the file, and those its secrets are in. */
import { existsSync, readFileSync } from 'node:fs'
import { builtInConfig } from '../../config/built-in-config.js'
import type { GatewayConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load.js'

export interface GatewayCommand {
  /** Nothing: `spillway.yaml` if there is one here, otherwise what is built in. */
  readonly config: string | undefined
  readonly port: number | undefined
  readonly adminPort: number | undefined
}

const USUAL_FILE = 'spillway.yaml'

export class ConfigSource {
  /** Nothing: the built-in configuration. */
  readonly file: string | undefined
  readonly #command: GatewayCommand
  #contents: Map<string, string | undefined> = new Map()

  constructor(command: GatewayCommand) {
    this.#command = command
    this.file = command.config ?? (existsSync(USUAL_FILE) ? USUAL_FILE : undefined)
  }

  /** What was read last, by path. */
  get contents(): ReadonlyMap<string, string | undefined> {
    return this.#contents
  }

  /** Throws a `ConfigError` with every mistake. The command line has the last word on ports. */
  read(): GatewayConfig {
    const { file } = this
    this.#contents = new Map()
    const written =
      file === undefined
        ? builtInConfig()
        : loadConfig({ file, readFile: (path) => this.#readFile(path) })
    const { port = written.port, adminPort = written.admin.port } = this.#command
    return { ...written, port, admin: { ...written.admin, port: adminPort } }
  }

  #readFile(path: string): string {
    this.#contents.set(path, undefined)
    const content = readFileSync(path, 'utf8')
    this.#contents.set(path, content)
    return content
  }
}
