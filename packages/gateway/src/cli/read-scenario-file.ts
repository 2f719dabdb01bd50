/** A scenario of the user's own, or the guard of a configuration, for the simulator. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { SCENARIOS, type Scenario } from '@spillway/simulator'
import type { GuardOptions } from 'spillway'
import { parse } from 'yaml'
import { loadConfig } from '../config/load.js'
import { didYouMean, UsageError } from './usage.js'

export function findScenario(what: string): Scenario {
  const known = SCENARIOS.find(({ name }) => name === what)
  if (known !== undefined) return known
  if (/\.(ya?ml|json)$/i.test(what)) return readFile(what)
  const names = SCENARIOS.map(({ name }) => name)
  throw new UsageError(`unknown scenario "${what}"${didYouMean(what, [...names, 'all'])}`)
}

/** Its mistakes are found when it is run. */
function readFile(file: string): Scenario {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new UsageError(`${file}: cannot be read (${code})`)
  }
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`)
  }
}

/** Nothing is sent anywhere, so secrets need not be there: whoever asks for one gets something of its shape. */
const NO_SECRETS: Readonly<Record<string, string>> = new Proxy<Record<string, string>>(
  {},
  {
    get: (_, name: string) => process.env[name] ?? madeUp(name),
    getOwnPropertyDescriptor: (_, name: string) => ({
      value: process.env[name] ?? madeUp(name),
      configurable: true,
      enumerable: true,
    }),
  },
)

function madeUp(name: string): string {
  return /REDIS/i.test(name) ? 'redis://simulated' : `simulated-${name}`
}

/** The configuration is read; a file with a secret in it need not be there. */
function readOrMakeUp(config: string): (path: string) => string {
  return (path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      if (resolve(path) === resolve(config)) throw error
      return madeUp(path)
    }
  }
}

export function guardOf(file: string, vendor: string | undefined): GuardOptions {
  const { vendors } = loadConfig({ file, env: NO_SECRETS, readFile: readOrMakeUp(file) })
  const found = vendor === undefined ? vendors[0] : vendors.find(({ name }) => name === vendor)
  if (found !== undefined) return found.guard
  const names = vendors.map(({ name }) => name)
  throw new UsageError(
    `--vendor: there is no "${vendor}" in ${file}${didYouMean(vendor ?? '', names)}`,
  )
}
