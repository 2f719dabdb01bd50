/** Reads a scenario file, or the guard options of a configuration, for the simulator. */
import { readFileSync } from 'node:fs'
import { SCENARIOS, type Scenario } from '@spillway/simulator'
import type { GuardOptions } from 'spillway'
import { parse } from 'yaml'
import { loadConfig } from '../../config/load.js'
import { placeholderSecrets } from '../../config/placeholder-secrets.js'
import { didYouMean, UsageError } from '../parse-args.js'

export function findScenario(what: string): Scenario {
  const known = SCENARIOS.find(({ name }) => name === what)
  if (known !== undefined) return known
  if (/\.(ya?ml|json)$/i.test(what)) return readFile(what)
  const names = SCENARIOS.map(({ name }) => name)
  throw new UsageError(`unknown scenario "${what}"${didYouMean(what, [...names, 'all'])}`)
}

/** The simulator validates it before the run. */
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

export function guardOf(file: string, vendor: string | undefined): GuardOptions {
  const { vendors } = loadConfig({ file, ...placeholderSecrets(file) })
  const found = vendor === undefined ? vendors[0] : vendors.find(({ name }) => name === vendor)
  if (found !== undefined) return found.guard
  const names = vendors.map(({ name }) => name)
  throw new UsageError(
    `--vendor: unknown vendor "${vendor}" in ${file}${didYouMean(vendor ?? '', names)}`,
  )
}
