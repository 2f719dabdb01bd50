/** A command of `spillway`: a row of the table that help, completions and the program read. */
import type { ParseArgsConfig } from 'node:util'

/** Exit codes. */
export const EXIT = {
  /** Success. */
  ok: 0,
  /** The command failed: an invalid file, a limit that does not hold, a refusal. */
  failure: 1,
  /** Invalid arguments. */
  usage: 2,
  /** The store, or the gateway, does not answer. */
  unavailable: 3,
} as const

type ParsedOption = NonNullable<ParseArgsConfig['options']>[string]

/** An option, with its description. */
export type OptionRow = ParsedOption & {
  /** Placeholder of its value in help; `FILE` completes files. */
  readonly value?: string
  /** The allowed values. */
  readonly oneOf?: readonly string[]
  readonly about: string
}

export type OptionRows = Readonly<Record<string, OptionRow>>

export interface CommandRow {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** Arguments after the name, one variant per line. */
  readonly usage: readonly string[]
  /** Allowed first arguments, if they are fixed. */
  readonly words?: readonly string[]
  /** Arguments are file names, for shell completion. */
  readonly takesFiles?: boolean
  readonly options: OptionRows
  /** Further text for `--help`. */
  readonly notes?: string
  /** Resolves with the exit code. Loads its modules when it runs, so that help is fast. */
  run(args: readonly string[]): Promise<number>
}

/** `--config FILE`; each command describes its use. */
export function configOption(about: string) {
  return {
    config: { type: 'string', short: 'c', value: 'FILE', about },
  } as const satisfies OptionRows
}

/** Options of every command that reads or changes the shared state of a fleet. */
export const STORE_OPTIONS = {
  ...configOption('configuration of the gateways. Default: spillway.yaml, if it exists'),
  redis: {
    type: 'string',
    value: 'URL',
    about: "Redis server. Default: the configuration's, or $REDIS_URL",
  },
  prefix: {
    type: 'string',
    value: 'TEXT',
    about: "prefix of all keys in Redis. Default: the configuration's",
  },
} as const satisfies OptionRows

export const HELP_OPTION = {
  help: { type: 'boolean', short: 'h', about: 'show this help' },
} as const satisfies OptionRows
