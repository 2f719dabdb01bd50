/** The source of a gateway's configuration, and the contents of the files that were read for it. */
import { readFileSync } from 'node:fs'
import { builtInConfig } from '../../config/built-in-config.js'
import type { GatewayConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load.js'
import { WORKERS_NEED_REDIS, workersOf } from '../../config/shapes/workers-shape.js'
import { CommandError } from '../command-error.js'
import { findConfigFile } from '../config-file.js'

export interface GatewayCommand {
  /** Undefined: `spillway.yaml` if it exists, otherwise the built-in configuration. */
  readonly config: string | undefined
  /** Overrides `host` of the configuration. */
  readonly host: string | undefined
  readonly port: number | undefined
  readonly adminPort: number | undefined
  /** Overrides `workers` of the configuration. */
  readonly workers: number | 'auto' | undefined
}

/** The contents of files by path; undefined if a file could not be read. */
type Contents = ReadonlyMap<string, string | undefined>

export class ConfigSource {
  /** Undefined: the built-in configuration. */
  readonly file: string | undefined
  readonly #command: GatewayCommand
  /** Used in place of the disk. */
  #given: Contents = new Map()
  #contents: Map<string, string | undefined> = new Map()

  constructor(command: GatewayCommand) {
    this.#command = command
    this.file = findConfigFile(command.config)
  }

  /** Contents that were read last, by path. */
  get contents(): Contents {
    return this.#contents
  }

  /** Uses these contents instead of the files, so that all workers start with the same configuration. */
  use(contents: Contents): void {
    this.#given = contents
  }

  /** Throws a `ConfigError` with every mistake. Options of the command line override the file. */
  read(): GatewayConfig {
    this.#contents = new Map()
    return this.#load((path) => this.#readFile(path))
  }

  /** Reads the current files like `read`, without keeping their contents: the result is only compared. */
  check(): GatewayConfig {
    return this.#load((path) => readFileSync(path, 'utf8'))
  }

  #load(readFile: (path: string) => string): GatewayConfig {
    const { file } = this
    const written = file === undefined ? builtInConfig() : loadConfig({ file, readFile })
    const { host = written.host, port = written.port } = this.#command
    const { adminPort = written.admin.port } = this.#command
    const workers = this.#workersOf(written)
    return { ...written, host, port, admin: { ...written.admin, port: adminPort }, workers }
  }

  #workersOf({ workers, redis }: GatewayConfig): number {
    const typed = this.#command.workers
    if (typed === undefined) return workers
    if (typed !== 1 && redis === undefined)
      throw new CommandError(`--workers ${WORKERS_NEED_REDIS}`)
    return workersOf(typed) ?? workers
  }

  #readFile(path: string): string {
    this.#contents.set(path, undefined)
    const content = this.#given.get(path) ?? readFileSync(path, 'utf8')
    this.#contents.set(path, content)
    return content
  }
}
