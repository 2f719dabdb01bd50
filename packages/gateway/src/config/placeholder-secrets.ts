/**
 * For commands that read a configuration and send no requests: secrets may be missing. Placeholders
 * of the same form replace them.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { LoadOptions } from './load.js'

const MADE_UP = 'redis://made-up.invalid/'

/** Something that was not there. */
export function isPlaceholder(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(MADE_UP)
}

/** The variable or file that is missing. */
export function missingIn(value: string): string {
  return value.slice(MADE_UP.length)
}

export function placeholderSecrets(
  config: string,
): Required<Pick<LoadOptions, 'env' | 'readFile'>> {
  return { env: OR_MADE_UP, readFile: readOrMakeUp(config) }
}

const OR_MADE_UP: Readonly<Record<string, string>> = new Proxy<Record<string, string>>(
  {},
  {
    get: (_, name: string) => presentOrMadeUp(name),
    getOwnPropertyDescriptor: (_, name: string) => {
      const value = presentOrMadeUp(name)
      return value === undefined ? undefined : { value, configurable: true, enumerable: true }
    },
  },
)

/** A missing REDIS_URL is kept, because it selects the memory store. */
function presentOrMadeUp(name: string): string | undefined {
  return process.env[name] ?? (name === 'REDIS_URL' ? undefined : `${MADE_UP}${name}`)
}

/** The configuration is read; a file with a secret in it need not be there. */
function readOrMakeUp(config: string): (path: string) => string {
  return (path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      if (resolve(path) === resolve(config)) throw error
      return `${MADE_UP}${path.replaceAll(/[^\w./-]/g, '_')}`
    }
  }
}
