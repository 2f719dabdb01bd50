/** From a file to a configuration, or to everything that is wrong with it. */
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

export interface LoadOptions {
  /** Where the file is. Mistakes are reported under this name. */
  file: string
  /** What stands in it. Default: it is read. */
  text?: string
  /** Default: those of the process. */
  env?: Sources['env']
  /** Reads the file, and those that secrets are in. Default: from the disk. */
  readFile?: (path: string) => string
}

/** The configuration in a file; or a `ConfigError` that lists every mistake in it. */
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
    const message = `cannot be read (${code})`
    const nowhere = { path: '', message, line: undefined, column: undefined }
    throw new ConfigError(`${file}  ${message}`, [nowhere])
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
