/** What a command of `spillway` is: a row of the table that help, completions and the program itself are made of. */
import type { ParseArgsConfig } from 'node:util'

/** What a shell can go by. */
export const EXIT = {
  /** Done, and all is well. */
  ok: 0,
  /** It was tried, and is not so: a mistake in a file, a promise that does not hold, a refusal. */
  failure: 1,
  /** What was typed makes no sense. */
  usage: 2,
  /** The store, or the gateway, does not answer. */
  unavailable: 3,
} as const

type ParsedOption = NonNullable<ParseArgsConfig['options']>[string]

/** An option, as it is parsed and as it is explained. */
export type OptionRow = ParsedOption & {
  /** What stands for its value in help; `FILE` completes files. */
  readonly value?: string
  /** One of these. */
  readonly oneOf?: readonly string[]
  readonly about: string
}

export type OptionRows = Readonly<Record<string, OptionRow>>

export interface CommandRow {
  readonly name: string
  /** One line, in the list of commands. */
  readonly summary: string
  /** How it is typed, after its name; a line each. */
  readonly usage: readonly string[]
  /** What may be the first word after its name, if that is known. */
  readonly words?: readonly string[]
  /** Its arguments are files. */
  readonly takesFiles?: boolean
  readonly options: OptionRows
  /** What else there is to know. */
  readonly notes?: string
  /** Answers with the exit code. What it needs is loaded when it runs: help should not wait for it. */
  run(args: readonly string[]): Promise<number>
}

/** `--config FILE`, which nearly every command has, each for something else. */
export function configOption(about: string) {
  return {
    config: { type: 'string', short: 'c', value: 'FILE', about },
  } as const satisfies OptionRows
}

export const HELP_OPTION = {
  help: { type: 'boolean', short: 'h', about: 'this' },
} as const satisfies OptionRows
