/** Reads and validates a configuration file. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { GatewayConfig } from './config.js'
import type { ConfigProblem } from './config-error.js'
import { ConfigError } from './config-error.js'
import { configError } from './document/error-report.js'
import { withHints } from './document/hints.js'
import { readDocument } from './document/yaml-document.js'
import { gatewayShape } from './shapes/gateway-shape.js'
import type { Sources } from './shapes/secret-reference.js'

/** Where the configuration comes from. */
export interface LoadOptions {
  /** Path of the file. Mistakes are reported under this name, and paths of secrets are relative to its folder. */
  file: string
  /** The text of the file. Default: `file` is read. */
  text?: string
  /** Environment variables for `env:NAME`. Default: `process.env`. */
  env?: Sources['env']
  /** Reads the file and the files of secrets. Default: from the disk. */
  readFile?: (path: string) => string
}

/**
 * Reads the configuration of a gateway, in YAML or JSON. Throws a `ConfigError` that lists every mistake.
 * @example
 * const gateway = await createGateway(loadConfig({ file: 'spillway.yaml' }))
 */
export function loadConfig(options: LoadOptions): GatewayConfig {
  const { file, env = process.env, readFile = (path) => readFileSync(path, 'utf8') } = options
  const text = options.text ?? readOrComplain(file, readFile)
  const folder = dirname(file)
  return parseConfig(file, text, { env, readFile: (path) => readFile(resolve(folder, path)) })
}

function readOrComplain(file: string, readFile: (path: string) => string): string {
  try {
    return readFile(file)
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string }
    const isMissing = code === 'ENOENT'
    const message = isMissing
      ? 'does not exist; spillway init writes one'
      : `cannot be read (${code})`
    const nowhere = { path: '', message, line: undefined, column: undefined }
    throw new ConfigError(`${file} ${message}`, [nowhere])
  }
}

function parseConfig(file: string, raw: string, sources: Sources): GatewayConfig {
  const text = raw.replace(/^\uFEFF/, '')
  const written = readDocument(text)
  if (written.syntax.length > 0) throw configError(file, text, written, written.syntax)
  const mistakes: ConfigProblem[] = [...written.mistakes]
  if (!written.broken) {
    const config = gatewayShape(sources)(written.value, '', mistakes)
    if (config !== undefined && mistakes.length === 0) return config
  }
  throw configError(file, text, written, withHints(mistakes, written.value))
}
