/** Replaces missing secrets by placeholders, for commands that read a configuration and send no requests. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { LoadOptions } from './load.js'

const PLACEHOLDER = 'redis://made-up.invalid/'

/** Whether the value replaces a missing secret. */
export function isPlaceholder(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(PLACEHOLDER)
}

/** The variable or file that is missing. */
export function missingIn(value: string): string {
  return value.slice(PLACEHOLDER.length)
}

export function placeholderSecrets(
  config: string,
): Required<Pick<LoadOptions, 'env' | 'readFile'>> {
  return { env: envOrPlaceholder, readFile: readOrPlaceholder(config) }
}

const envOrPlaceholder: Readonly<Record<string, string>> = new Proxy<Record<string, string>>(
  {},
  {
    get: (_, name: string) => valueOrPlaceholder(name),
    getOwnPropertyDescriptor: (_, name: string) => {
      const value = valueOrPlaceholder(name)
      return value === undefined ? undefined : { value, configurable: true, enumerable: true }
    },
  },
)

/** A missing REDIS_URL is kept, because it selects the memory store. */
function valueOrPlaceholder(name: string): string | undefined {
  return process.env[name] ?? (name === 'REDIS_URL' ? undefined : `${PLACEHOLDER}${name}`)
}

/** The configuration file must exist; a secret file may be missing. */
function readOrPlaceholder(config: string): (path: string) => string {
  return (path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      if (resolve(path) === resolve(config)) throw error
      return `${PLACEHOLDER}${path.replaceAll(/[^\w./-]/g, '_')}`
    }
  }
}
