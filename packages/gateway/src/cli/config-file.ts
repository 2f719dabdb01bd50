/** The configuration file that commands use if none is named. */
import { existsSync } from 'node:fs'

export const DEFAULT_CONFIG_FILE = 'spillway.yaml'

/** Returns `given`, or `spillway.yaml` if it exists in the current folder. */
export function findConfigFile(given: string | undefined): string | undefined {
  return given ?? (existsSync(DEFAULT_CONFIG_FILE) ? DEFAULT_CONFIG_FILE : undefined)
}
