/** What is wrong with a configuration: every mistake, with the line it stands on. */

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
