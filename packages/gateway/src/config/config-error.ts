/** The error of a configuration that cannot be used: every mistake with its line. */
import type { OptionProblem } from 'spillway/options'

/** A problem that a check found, before its line in the file is known. */
export interface ConfigProblem extends OptionProblem {
  /** Position if it is not the value's. `key`: the name. `outside`: not in the file. A number: an offset. */
  at?: 'key' | 'outside' | number
}

export interface ConfigMistake {
  /** Such as `vendors.openai.limits[0].windowMs`; empty where the file is no YAML. */
  readonly path: string
  readonly message: string
  /** From 1; none: it does not stand in the file. */
  readonly line: number | undefined
  readonly column: number | undefined
}

export class ConfigError extends Error {
  readonly code = 'INVALID_CONFIG'
  readonly mistakes: readonly ConfigMistake[]

  /** The message is for people: all mistakes, each with its line. */
  constructor(message: string, mistakes: readonly ConfigMistake[]) {
    super(message)
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}
