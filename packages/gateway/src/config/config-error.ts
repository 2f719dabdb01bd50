/** The error of a configuration that cannot be used: every mistake with its line. */
import type { OptionProblem } from 'spillway/options'

/** A problem that a check found, before its line in the file is known. */
export interface ConfigProblem extends OptionProblem {
  /** Position if it is not the value's. `key`: the name. `outside`: not in the file. A number: an offset. */
  at?: 'key' | 'outside' | number
}

/** One mistake in a configuration. */
export interface ConfigMistake {
  /** Path of the option, such as `vendors.openai.limits[0].windowMs`; empty if the file is no YAML. */
  readonly path: string
  /** What is wrong, and what is expected. */
  readonly message: string
  /** Line in the file, from 1; undefined if the mistake is not in the file. */
  readonly line: number | undefined
  /** Column in that line, from 1. */
  readonly column: number | undefined
}

/** Thrown by `loadConfig`: lists every mistake with its line. */
export class ConfigError extends Error {
  /** Code of the error. */
  readonly code = 'INVALID_CONFIG'
  /** All mistakes, in the order of the file. */
  readonly mistakes: readonly ConfigMistake[]

  /** The message is for people: all mistakes, each with its line. */
  constructor(message: string, mistakes: readonly ConfigMistake[]) {
    super(message)
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}
